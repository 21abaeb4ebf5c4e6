package draw

import (
	"github.com/fermata-agent/fermata/internal/markup"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// codeRoles says how pieces of code look.
var codeRoles = [...][]theme.Role{
	markup.Plain:   nil,
	markup.Keyword: {theme.Keyword},
	markup.String:  {theme.String},
	markup.Comment: {theme.Comment},
	markup.Number:  {theme.Number},
	markup.Added:   {theme.Added},
	markup.Removed: {theme.Removed},
}

// codeLine colours the next line of code.
func codeLine(h *markup.Highlighter, line string) *runs {
	r := &runs{}
	for _, t := range h.Line(line) {
		r.add(t.Text, codeRoles[t.Class])
	}
	return r
}
