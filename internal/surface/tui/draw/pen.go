package draw

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// A pen collects the lines of one item.
type pen struct {
	Options
	lines  []string
	folded bool // something is left out, or would be if it were not expanded
}

// add adds a line that is painted.
func (p *pen) add(line string) { p.lines = append(p.lines, safetext.Fit(line, p.Width)) }

// room is the width that is left beside an indentation.
func (p *pen) room(indent int) int { return max(1, p.Width-indent) }

// para adds text of others as a paragraph behind a mark. A text that is empty
// still has the mark.
func (p *pen) para(mark string, markRole theme.Role, text string, role theme.Role) {
	indent := safetext.Width(mark)
	text = strings.TrimSpace(safetext.Show(text))
	for i, l := range safetext.Wrap(text, p.room(indent)) {
		lead := strings.Repeat(" ", indent)
		if i == 0 {
			lead = p.Theme.Paint(markRole, mark)
		}
		p.add(lead + p.Theme.Paint(role, l))
	}
}

// fold returns how many of n lines to leave out so that about most are shown.
// One that would be left out alone is shown: saying so takes as much room.
func (p *pen) fold(n, most int) int {
	if n <= most+1 {
		return 0
	}
	p.folded = true
	if p.Expanded {
		return 0
	}
	return n - most
}

// more says that something was left out.
func (p *pen) more(n int, what string) {
	if n > 0 {
		p.add(p.Theme.Paint(theme.Dim, "  … "+humanize.Count(n, "more "+what)))
	}
}

// took is how long an item took, or has taken until now. It is empty if that is
// not known, as of an item whose beginning was not seen.
func (p *pen) took(it *transcript.Item) string {
	if it.Start.IsZero() || it.End.IsZero() && p.Now.IsZero() {
		return ""
	}
	return it.Elapsed(p.Now)
}

// file is a path as it is shown, and as a link if there is a program to open it.
func (p *pen) file(path string) string {
	name := p.short(path)
	if p.Opener == "" || !filepath.IsAbs(path) {
		return name
	}
	link := url.URL{Scheme: p.Opener, Host: "file", Path: path}
	return ansi.SetHyperlink(link.String()) + name + ansi.ResetHyperlink()
}

// short is a path as it is shown.
func (p *pen) short(path string) string {
	if p.Dir != "" {
		path = strings.TrimPrefix(path, strings.TrimSuffix(p.Dir, "/")+"/")
	}
	return safetext.ShowLine(path)
}
