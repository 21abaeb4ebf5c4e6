package draw

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// asked draws a call that has not begun in the form that it will have: as a command, or
// as changes to files. It reports false if there is no such form.
func (p *pen) asked(it *transcript.Item) bool {
	switch want := transcript.RequestOf(it.Tool, it.Arguments); {
	case want.Command != "":
		p.script("$ ", safetext.Show(want.Command))
	case len(want.Files) > 0:
		var files []string
		for _, f := range want.Files {
			verb, path, _ := strings.Cut(f, " ")
			files = append(files, verb+" "+p.short(path))
		}
		p.para("± ", theme.Accent, strings.Join(files, ", "), theme.Bold)
	default:
		return false
	}
	p.output(it, tailLines)
	p.status(it)
	return true
}

// server draws a call of a tool of an MCP server.
func (p *pen) server(it *transcript.Item) {
	name := safetext.ShowLine(it.Server.Server + " · " + it.Server.Name)
	p.add(p.Theme.Paint(theme.Accent, "⇢ ") + p.Theme.Paint(theme.Bold, name))
	lines := Arguments(it.Arguments)
	rest := p.fold(len(lines), scriptLines)
	for _, l := range lines[:len(lines)-rest] {
		shown := safetext.ShowLine(l)
		if safetext.Width(shown) > p.room(2) {
			p.folded = true
		}
		if !p.Expanded {
			p.add("  " + safetext.Cut(shown, p.room(2)))
			continue
		}
		for _, part := range hard(shown, p.room(2)) {
			p.add("  " + part)
		}
	}
	p.more(rest, "line")
	p.output(it, tailLines)
	p.status(it)
}

// Arguments are those of a call of an MCP server, one line each.
func Arguments(object string) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &fields) != nil {
		if strings.TrimSpace(object) == "" {
			return nil
		}
		return []string{object}
	}
	var lines []string
	for name, v := range fields {
		text := string(v)
		var s string
		if json.Unmarshal(v, &s) == nil {
			text = s
		}
		lines = append(lines, name+": "+text)
	}
	slices.Sort(lines)
	return lines
}
