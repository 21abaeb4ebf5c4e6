package updates

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// maxDiff is how long a diff may be that is shown.
const maxDiff = 1 << 20

// diffs is a change of a file: one for each hunk, with the lines around it.
func diffs(c transcript.Change) []wire.CallContent {
	path := cmp.Or(c.Move, c.Path)
	if len(c.Diff) > maxDiff {
		block := wire.Text(fmt.Sprintf("%s: %d lines added, %d removed; the diff is too long to be shown here", path, c.Added, c.Removed))
		return []wire.CallContent{{Type: "content", Content: &block}}
	}
	var list []wire.CallContent
	for _, h := range hunks(c.Diff) {
		d := wire.CallContent{Type: "diff", Path: path, OldText: &h.old, NewText: &h.new}
		if c.Kind == "add" {
			d.OldText = nil
		}
		list = append(list, d)
	}
	if len(list) == 0 && c.Kind != "delete" && c.Move == "" { // an empty file
		empty := ""
		list = append(list, wire.CallContent{Type: "diff", Path: path, NewText: &empty})
	}
	return list
}

// A hunk is a piece of a file before and after.
type hunk struct{ old, new string }

// hunks reads hunks in unified format. What comes before the first header is a hunk, too: additions have none.
func hunks(diff string) []hunk {
	var list []hunk
	var old, new []string
	flush := func() {
		if len(old)+len(new) > 0 {
			list = append(list, hunk{strings.Join(old, ""), strings.Join(new, "")})
		}
		old, new = nil, nil
	}
	var last byte
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
		case line[0] == '-':
			old = append(old, line[1:])
		case line[0] == '+':
			new = append(new, line[1:])
		case line[0] == ' ' || line[0] == '\n':
			old, new = append(old, strings.TrimPrefix(line, " ")), append(new, strings.TrimPrefix(line, " "))
		case line[0] == '\\': // the line before has no end
			trimEnd(old, last != '+')
			trimEnd(new, last != '-')
		}
		last = line[0]
	}
	flush()
	return list
}

// trimEnd takes the end of the last line away, if it is to.
func trimEnd(lines []string, trim bool) {
	if n := len(lines); trim && n > 0 {
		lines[n-1] = strings.TrimSuffix(lines[n-1], "\n")
	}
}

// firstLine is the line of the new file at which the first hunk begins, 0 if that is not known.
func firstLine(diff string) int {
	_, rest, ok := strings.Cut(diff, "@@ -")
	if !ok {
		return 0
	}
	_, rest, _ = strings.Cut(rest, " +")
	end := strings.IndexAny(rest, ", @\n")
	if end < 0 {
		return 0
	}
	n, _ := strconv.Atoi(rest[:end]) // else it is not known
	return n
}
