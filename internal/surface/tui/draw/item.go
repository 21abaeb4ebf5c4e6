package draw

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// Options say how to draw.
type Options struct {
	Width    int          // of the screen; no line is wider
	Theme    *theme.Theme // how things look
	Expanded bool         // show all of it
	Now      time.Time    // for what still runs
	Dir      string       // paths below it are shown relative to it

	Opener        string // the program that file names are links to; empty: they are not
	HideReasoning bool   // leave out what the model thought
}

// Item draws an item of a transcript. It returns nothing if there is nothing to show.
func Item(it *transcript.Item, o Options) []string {
	lines, _ := drawItem(it, o)
	return lines
}

// Items draws items one below the other, each followed by an empty line.
func Items(list []*transcript.Item, o Options) []string {
	var lines []string
	for _, it := range list {
		if drawn := Item(it, o); len(drawn) > 0 {
			lines = append(append(lines, drawn...), "")
		}
	}
	return lines
}

// Foldable reports whether the item looks different when it is expanded.
func Foldable(it *transcript.Item, o Options) bool {
	o.Expanded = false
	_, folded := drawItem(it, o)
	return folded
}

// draw draws an item and reports whether some of it is folded away.
func drawItem(it *transcript.Item, o Options) ([]string, bool) {
	p := &pen{Options: o}
	switch it.Kind {
	case transcript.User:
		p.user(it)
	case transcript.Message:
		p.message(it)
	case transcript.Reasoning:
		if !o.HideReasoning {
			p.reasoning(it)
		}
	case transcript.Plan:
		p.plan(it)
	case transcript.Retry:
		p.retry(it)
	case transcript.End:
		p.end(it)
	case transcript.Notice:
		p.notice(it)
	default:
		p.call(it)
	}
	return p.lines, p.folded
}

// How much of an item is shown folded.
const (
	userLines   = 20
	tailLines   = 5 // of a command's output
	scriptLines = 4 // of a command
	diffLines   = 16
	diffFiles   = 8
)

// liveLines bounds what is shown expanded of output that still grows, because
// it is drawn again with every frame.
const liveLines = 200

func (p *pen) user(it *transcript.Item) {
	lines := safetext.Wrap(strings.TrimRight(safetext.Clean(it.Text), " \n"), p.room(2))
	rest := p.fold(len(lines), userLines)
	for i, l := range lines[:len(lines)-rest] {
		mark := "  "
		if i == 0 {
			mark = "› "
		}
		line := p.Theme.Paint(theme.User, strings.TrimRight(mark+l, " "))
		if number := fmt.Sprint(it.Turn); i == 0 && it.First && p.Width >= 40 && safetext.Width(mark+l)+len(number)+2 <= p.Width { // by which /rewind and /undo-turn know it
			line += strings.Repeat(" ", p.Width-safetext.Width(strings.TrimRight(mark+l, " "))-len(number)) + p.Theme.Paint(theme.Dim, number)
		}
		p.add(line)
	}
	p.more(rest, "line")
}

func (p *pen) message(it *transcript.Item) {
	p.lines = Markdown(it.Text, p.Width, p.Theme)
	p.cutMark(it)
}

// cutMark says that the text is truncated where it ends.
func (p *pen) cutMark(it *transcript.Item) {
	if it.Status == transcript.Interrupted {
		p.lines = append(p.lines, safetext.Fit(p.Theme.Paint(theme.Warn, "■ partial: interrupted here"), p.Width))
	}
}

func (p *pen) reasoning(it *transcript.Item) {
	text := strings.TrimSpace(safetext.Clean(it.Text))
	word := "thought"
	switch it.Status {
	case transcript.Open:
		word = "thinking"
	case transcript.Interrupted:
		word = "thought, interrupted"
	}
	head := "∴ " + word
	if took := p.took(it); took != "" {
		head += " " + took
	}
	if text == "" {
		if it.Status == transcript.Open {
			p.add(p.Theme.Paint(theme.Dim, safetext.Cut(head, p.Width)))
		}
		return
	}
	p.folded = true
	if !p.Expanded {
		p.add(p.Theme.Paint(theme.Dim, safetext.Cut(head+": "+gist(text), p.Width)))
		return
	}
	p.add(p.Theme.Paint(theme.Dim, safetext.Cut(head, p.Width)))
	for _, l := range safetext.Wrap(text, p.room(2)) {
		p.add(p.Theme.Paint(theme.Dim, "  "+l))
	}
}

// gist is the last heading of some reasoning, or else its first line.
func gist(text string) string {
	if i := strings.LastIndex(text, "\n**"); i >= 0 {
		text = text[i+1:]
	}
	return strings.Trim(safetext.First(text), "*# ")
}

func (p *pen) plan(it *transcript.Item) {
	head := "plan"
	if text := safetext.First(it.Text); text != "" {
		head += ": " + text
	}
	p.para("◇ ", theme.Accent, head, theme.Bold)
	for _, s := range it.Plan {
		switch s.Status {
		case "completed":
			p.para("  ✓ ", theme.OK, s.Step, theme.Dim)
		case "in_progress":
			p.para("  ▸ ", theme.Accent, s.Step, theme.Bold)
		default:
			p.para("  ☐ ", theme.Dim, s.Step, theme.Text)
		}
	}
}

// retry is one line for all retries of a request, with the time until the next.
func (p *pen) retry(it *transcript.Item) {
	text := it.Text
	if r := it.Retry; r != nil {
		text = fmt.Sprintf("retry %d of %d", r.Attempt, r.Max)
		if left := it.Start.Add(r.Wait).Sub(p.Now); it.Status == transcript.Open && left > 0 {
			text += fmt.Sprintf(" in %d s", int(math.Ceil(left.Seconds())))
		}
		text += ": " + r.Reason
	}
	p.para("↻ ", theme.Warn, text, theme.Warn)
}

func (p *pen) end(it *transcript.Item) {
	if strings.HasPrefix(it.Text, "done in ") { // it completed
		text := "✓ D" + strings.TrimPrefix(it.Text, "d")
		if !it.End.IsZero() {
			text += " · " + it.End.Local().Format("15:04")
		}
		p.add(p.Theme.Paint(theme.Dim, text))
		return
	}
	role := theme.Warn
	if it.Warn {
		role = theme.Error
	}
	p.para("■ ", role, it.Text, role)
}

func (p *pen) notice(it *transcript.Item) {
	if it.Warn {
		p.para("! ", theme.Warn, it.Text, theme.Warn)
		return
	}
	p.para("· ", theme.Dim, it.Text, theme.Dim)
}
