package draw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// Diff draws changes in files: those of an approval, or those that
// transcript.ParseDiff reads from the diff of a turn. Folded, the first lines of
// each file are shown.
func Diff(changes []transcript.Change, o Options) []string {
	p := &pen{Options: o}
	p.changes(changes)
	return p.lines
}

var patchWords = map[transcript.Status]string{
	transcript.Open:        "changing",
	transcript.Asking:      "wants to change",
	transcript.Done:        "changed",
	transcript.Failed:      "did not change",
	transcript.Interrupted: "was changing",
	transcript.Declined:    "may not change",
}

func (p *pen) patch(it *transcript.Item) {
	added, removed := 0, 0
	for _, c := range it.Changes {
		added, removed = added+c.Added, removed+c.Removed
	}
	word := patchWords[it.Status]
	if it.Patch != nil && it.Patch.Applied {
		word = "changed" // also if the turn was interrupted then
	}
	head := p.Theme.Paint(theme.Accent, "± ") + p.Theme.Paint(theme.Bold, word+" "+humanize.Count(len(it.Changes), "file"))
	p.add(head + p.counts(added, removed))
	p.changes(it.Changes)
	switch it.Status {
	case transcript.Done:
	case transcript.Failed:
		p.para("  ✗ ", theme.Error, failedPatch(it), theme.Error)
	default:
		p.status(it)
	}
}

// failedPatch is why nothing was written.
func failedPatch(it *transcript.Item) string {
	if text := safetext.First(it.Output); text != "" {
		return text
	}
	return "failed"
}

func (p *pen) counts(added, removed int) string {
	if added+removed == 0 {
		return ""
	}
	return " " + p.Theme.Paint(theme.Dim, "(") + p.Theme.Paint(theme.Added, fmt.Sprintf("+%d", added)) + " " +
		p.Theme.Paint(theme.Removed, fmt.Sprintf("-%d", removed)) + p.Theme.Paint(theme.Dim, ")")
}

// changes draws the diff of each file under its name.
func (p *pen) changes(list []transcript.Change) {
	left := diffLines
	rest := p.fold(len(list), diffFiles)
	for _, c := range list[:len(list)-rest] {
		name := p.file(c.Path)
		if c.Move != "" {
			name += " → " + p.file(c.Move)
		}
		p.add("  " + p.Theme.Paint(theme.Heading, letters[c.Kind]+" "+name) + p.counts(c.Added, c.Removed))
		left -= p.hunks(c.Diff, max(left, 0))
	}
	p.more(rest, "file")
}

var letters = map[string]string{"add": "A", "delete": "D", "update": "M"}

// hunks draws the diff of one file with line numbers, and returns how many lines
// it drew. Folded, it draws about most of them.
func (p *pen) hunks(diff string, most int) int {
	if diff == "" {
		return 0
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	rest := p.fold(len(lines), most)
	n := numbering{width: digits(lines), before: 1, after: 1}
	for i, line := range lines[:len(lines)-rest] {
		p.diffLine(&n, line, i == 0)
	}
	if rest > 0 {
		p.add(p.Theme.Paint(theme.Dim, "    … "+humanize.Count(rest, "more line")))
	}
	return len(lines) - rest
}

// A numbering knows which line of a file comes next.
type numbering struct {
	width         int // of a number
	before, after int
}

// digits is the width of the greatest line number.
func digits(lines []string) int {
	most, at := 1, 1
	for _, l := range lines {
		if before, after, ok := hunk(l); ok {
			at = max(before, after)
		}
		at++
		most = max(most, at)
	}
	return len(strconv.Itoa(most))
}

// hunk reads "@@ -1,2 +3,4 @@".
func hunk(line string) (before, after int, ok bool) {
	if !strings.HasPrefix(line, "@@ -") {
		return 0, 0, false
	}
	_, err := fmt.Sscanf(line, "@@ -%d", &before)
	if err != nil {
		return 0, 0, false
	}
	_, plus, found := strings.Cut(line, " +")
	if !found {
		return 0, 0, false
	}
	_, err = fmt.Sscanf(plus, "%d", &after)
	return before, after, err == nil && before >= 0 && after >= 0
}

func (p *pen) diffLine(n *numbering, line string, first bool) {
	if before, after, ok := hunk(line); ok {
		n.before, n.after = before, after
		if !first {
			p.add(p.Theme.Paint(theme.Dim, "    "+strings.Repeat(" ", n.width-1)+"⋮"))
		}
		return
	}
	sign, number, role := " ", n.after, theme.Text
	switch {
	case strings.HasPrefix(line, "+"):
		sign, role = "+", theme.Added
		n.after++
	case strings.HasPrefix(line, "-"):
		sign, number, role = "-", n.before, theme.Removed
		n.before++
	case strings.HasPrefix(line, " "), line == "":
		n.before++
		n.after++
	default: // a remark, such as that there is no newline at the end
		p.add(p.Theme.Paint(theme.Dim, "    "+safetext.Cut(safetext.ShowLine(line), p.room(4))))
		return
	}
	if line != "" {
		line = line[1:]
	}
	gutter := fmt.Sprintf("    %*d ", n.width, number)
	p.codeLine(gutter, sign, safetext.ShowLine(strings.TrimSuffix(line, "\r")), role)
}

func (p *pen) codeLine(gutter, sign, text string, role theme.Role) {
	room := p.room(len(gutter) + 1)
	lines := []string{safetext.Cut(text, room)}
	if safetext.Width(text) > room {
		p.folded = true
		if p.Expanded {
			lines = hard(text, room)
		}
	}
	for i, l := range lines {
		if i > 0 {
			gutter = strings.Repeat(" ", len(gutter))
		}
		p.add(p.Theme.Paint(theme.Dim, gutter) + p.Theme.Paint(role, sign+l))
	}
}
