package commands

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
)

// WithPrompts adds the user's prompts to the commands, except those that have the name of one.
func WithPrompts(list []composer.Command, prompts []skills.Prompt) []composer.Command {
	for _, f := range prompts {
		if slices.ContainsFunc(list, func(c composer.Command) bool { return c.Name == f.Name }) {
			continue
		}
		help := cmp.Or(f.Description, "send "+filepath.Base(f.File))
		list = append(list, composer.Command{Name: f.Name, Args: f.Arguments, Help: safetext.Line(help)})
	}
	return list
}
