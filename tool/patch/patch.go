// Package patch has tools that change files: whole or not at all, also if the process is killed meanwhile. An engine
// completes or reverts an interrupted patch when it opens the conversation again.
package patch

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/native"
	builtin "github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/tool"
	"github.com/fermata-agent/fermata/tool/internal/options"
)

// New returns the tool apply_patch, which adds, updates, moves and deletes files.
func New(o tool.Options) engine.Tool { return native.Tool(options.Patch(o)) }

// Edit returns the tool edit, which replaces text in a file. Most models that do not know apply_patch prefer it.
func Edit(o tool.Options) engine.Tool { return native.Tool(&builtin.Edit{Patch: options.Patch(o)}) }

// Write returns the tool write, which writes a whole file.
func Write(o tool.Options) engine.Tool { return native.Tool(&builtin.Write{Patch: options.Patch(o)}) }
