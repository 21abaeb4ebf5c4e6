package cell

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// asked draws a call that has not begun in the form that it will have: as a command, or
// as changes to files. It reports false if there is no such form.
func (p *pen) asked(it *transcript.Item) bool {
	if line, ok := wanted(it.Arguments, "cmd", "command"); ok && commandTools[it.Tool] {
		p.script("$ ", safetext.Show(line))
		p.output(it, tailLines)
		p.status(it)
		return true
	}
	if it.Tool != "apply_patch" {
		return false
	}
	text, ok := wanted(it.Arguments, "input", "patch")
	if !ok {
		text = it.Arguments
	}
	var files []string
	for line := range strings.Lines(text) {
		for mark, verb := range patchMarks {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				files = append(files, verb+" "+p.short(path))
			}
		}
	}
	if len(files) == 0 {
		return false
	}
	p.para("± ", theme.Accent, strings.Join(files, ", "), theme.Bold)
	p.output(it, tailLines)
	p.status(it)
	return true
}

var commandTools = map[string]bool{"exec_command": true, "shell": true, "shell_command": true, "local_shell": true, "bash": true}

var patchMarks = map[string]string{"*** Add File: ": "add", "*** Update File: ": "update", "*** Delete File: ": "delete"}

// wanted is a text among the arguments of a call, by one of its names.
func wanted(arguments string, names ...string) (string, bool) {
	var fields map[string]any
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return "", false
	}
	for _, name := range names {
		switch v := fields[name].(type) {
		case string:
			return v, true
		case []any:
			var words []string
			for _, w := range v {
				words = append(words, fmt.Sprint(w))
			}
			return transcript.CommandLine(words), true
		}
	}
	return "", false
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
