// Package read has tools that look at files and change nothing, so that calls run side by side.
package read

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/native"
	builtin "github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/tool"
	"github.com/fermata-agent/fermata/tool/internal/options"
)

// New returns the tool read_file, which reads a part of a text file.
func New(o tool.Options) engine.Tool { return native.Tool(&builtin.Read{Files: options.Files(o)}) }

// List returns the tool list_files, which lists directories and finds files by a pattern.
func List(o tool.Options) engine.Tool { return native.Tool(&builtin.List{Files: options.Files(o)}) }

// Image returns the tool view_image, which shows an image to models that accept images.
func Image(o tool.Options) engine.Tool {
	return native.Tool(builtin.ViewImage{Secret: options.Files(o).Secret})
}
