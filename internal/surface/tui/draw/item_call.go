package draw

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// call draws a tool at work: a command, a patch, or any other.
func (p *pen) call(it *transcript.Item) {
	switch {
	case len(it.Changes) > 0:
		p.patch(it)
	case len(it.Command) > 0:
		p.command(it)
	case it.Server != nil:
		p.server(it)
	case p.asked(it):
	case it.Tool == "update_plan" && it.Status != transcript.Failed:
		// The plan is all there is to show of it.
	case it.Tool != "" || it.Output != "" || it.Status == transcript.Asking:
		p.tool(it)
	}
}

func (p *pen) command(it *transcript.Item) {
	mark := "$ "
	if it.Kind == transcript.Background {
		mark = fmt.Sprintf("&%d ", it.Background)
	}
	p.script(mark, safetext.Show(it.CommandLine()))
	if it.Cwd != "" && it.Cwd != p.Dir {
		p.add(p.Theme.Paint(theme.Dim, safetext.Cut("  in "+p.short(it.Cwd), p.Width)))
	}
	p.output(it, tailLines)
	p.status(it)
}

// script draws the command itself.
func (p *pen) script(mark, text string) {
	var lines []string
	for _, r := range strings.Split(strings.TrimRight(text, " \n"), "\n") {
		lines = append(lines, hard(r, p.room(len(mark)))...)
	}
	rest := p.fold(len(lines), scriptLines)
	for i, l := range lines[:len(lines)-rest] {
		lead := strings.Repeat(" ", len(mark))
		if i == 0 {
			lead = p.Theme.Paint(theme.Accent, mark)
		}
		p.add(lead + p.Theme.Paint(theme.Bold, l))
	}
	p.more(rest, "line")
}

func hard(s string, width int) []string {
	var lines []string
	for _, r := range safetext.Hard(s, width) {
		lines = append(lines, s[r[0]:r[1]])
	}
	return lines
}

// output draws the last lines of what a call printed: folded each cut to the
// width, expanded all of them whole.
func (p *pen) output(it *transcript.Item, most int) {
	if it.Omitted > 0 {
		p.add(p.Theme.Paint(theme.Dim, fmt.Sprintf("  … %s of output left out", size(it.Omitted))))
	}
	text := strings.TrimRight(it.Output, "\r\n\t ")
	if text == "" {
		return
	}
	n := strings.Count(text, "\n") + 1
	rest := p.fold(n, most)
	if it.Status == transcript.Open && p.Expanded {
		rest = max(0, n-liveLines)
	}
	if rest > 0 {
		p.add(p.Theme.Paint(theme.Dim, "  … "+humanize.Count(rest, "line")+" above"))
		text = tail(text, n-rest)
	}
	for _, line := range strings.Split(text, "\n") {
		p.outputLine(line)
	}
}

func (p *pen) outputLine(line string) {
	line = strings.TrimRight(safetext.Line(last(line)), " ")
	if safetext.Width(line) <= p.room(2) {
		p.add("  " + p.Theme.Paint(theme.Dim, line))
		return
	}
	p.folded = true
	if !p.Expanded {
		p.add("  " + p.Theme.Paint(theme.Dim, safetext.Cut(line, p.room(2))))
		return
	}
	for _, l := range hard(line, p.room(2)) {
		p.add("  " + p.Theme.Paint(theme.Dim, l))
	}
}

// last drops what a progress bar wrote long ago and has written over many times
// since.
func last(line string) string {
	const enough = 16 << 10
	if len(line) <= enough {
		return line
	}
	if i := strings.LastIndexByte(line[:len(line)-enough], '\r'); i >= 0 {
		return line[i+1:]
	}
	return line
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	at := len(text)
	for range n {
		i := strings.LastIndexByte(text[:at], '\n')
		if i < 0 {
			return text
		}
		at = i
	}
	return text[at+1:]
}

func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// tool draws a call of any other tool: its name and arguments, and the beginning
// of what it answered.
func (p *pen) tool(it *transcript.Item) {
	head := safetext.ShowLine(it.Tool)
	if head == "" {
		head = "call"
	}
	arguments := strings.Join(strings.Fields(safetext.Show(it.Arguments)), " ")
	room := max(1, p.Width-2-safetext.Width(head)-1)
	if safetext.Width(arguments) > room {
		p.folded = true
	}
	mark := p.Theme.Paint(theme.Accent, "→ ") + p.Theme.Paint(theme.Bold, head)
	if p.Expanded && safetext.Width(arguments) > room {
		p.add(mark)
		for _, l := range safetext.Wrap(arguments, p.room(2)) {
			p.add("  " + p.Theme.Paint(theme.Dim, l))
		}
	} else if arguments == "" {
		p.add(mark)
	} else {
		p.add(mark + " " + p.Theme.Paint(theme.Dim, safetext.Cut(arguments, room)))
	}
	p.output(it, tailLines)
	p.status(it)
}

// status is the last line of a call: how it went.
func (p *pen) status(it *transcript.Item) {
	mark, role, parts := "✓ ", theme.OK, []string{}
	switch it.Status {
	case transcript.Open:
		if it.Waiting {
			p.para("  … ", theme.Dim, "waiting", theme.Dim)
			return
		}
		mark, role, parts = "… ", theme.Dim, []string{"running"}
		if it.Progress != "" {
			parts = append(parts, safetext.Line(it.Progress))
		}
	case transcript.Asking:
		p.asking(it)
		return
	case transcript.Interrupted:
		mark, role, parts = "■ ", theme.Warn, []string{"interrupted"}
		if it.Killed > 0 {
			parts = append(parts, humanize.Count(it.Killed, "process")+" killed")
		}
	case transcript.Declined:
		mark, role, parts = "✗ ", theme.Warn, []string{"declined"}
	case transcript.Failed:
		mark, role, parts = "✗ ", theme.Error, []string{it.Failure()}
	}
	if it.Kind == transcript.Call && it.Background != 0 && it.Status == transcript.Done {
		mark, role, parts = "… ", theme.Dim, []string{fmt.Sprintf("continues in the background as &%d", it.Background)}
	}
	if took := p.took(it); took != "" && it.Status != transcript.Declined {
		parts = append(parts, took)
	}
	p.para("  "+mark, role, strings.Join(parts, " · "), role)
}

func (p *pen) asking(it *transcript.Item) {
	text := "waiting for your approval"
	if it.Approval != nil && it.Approval.Reason != "" {
		text += ": " + it.Approval.Reason
	}
	p.para("  ? ", theme.Warn, text, theme.Warn)
}
