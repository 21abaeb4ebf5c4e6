package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// leave says that the program has to end.
type leave struct {
	because error // the signal; nil if the person wants it
	ran     bool  // a turn ran when it came
	goesOn  bool  // and it continues in another process
}

// shut says that nothing runs any more, or that the bound is over.
type shut struct{ err error }

// gone ends the program.
type gone struct{}

// quit ends the program, after a question if something runs.
func (m *model) quit() tea.Cmd {
	owner, elsewhere := m.owner()
	if elsewhere && m.leaving == nil && m.conv.tr.Active {
		return m.askToDetach(owner)
	}
	var running []string
	for _, job := range m.conv.tr.Running {
		if !elsewhere {
			running = append(running, commands.Job(job))
		}
	}
	if len(m.leftOpen) == 0 || m.leaving != nil {
		return m.askToQuit(running)
	}
	ctx, e, leftOpen := m.ctx, m.o.Engine, slices.Clone(m.leftOpen)
	return func() tea.Msg {
		others := commands.JobsOf(ctx, e, leftOpen)
		return terminal.Done{Then: func() tea.Cmd { return m.askToQuit(append(running, others...)) }}
	}
}

func (m *model) askToQuit(running []string) tea.Cmd {
	n := len(running)
	if n == 0 && !m.runs() || m.leaving != nil {
		return m.leave(leave{})
	}
	var turn p.TurnID
	ask := dialog.Confirm{
		Title: screen.Count(n, "background command") + " still running", Body: append([]string{"Quitting stops what still runs:"}, running...), Default: 1,
		Choices: []dialog.Choice{{ID: "quit", Key: "y", Label: "stop it, and quit"}, {ID: "stay", Key: "n", Label: "stay"}},
	}
	if m.runs() {
		ask.Title = fmt.Sprintf("Turn %d is running", m.conv.tr.Turn)
		ask.Body = append([]string{"Quitting stops it; the conversation can be resumed."}, running...)
		ask.Choices[0] = dialog.Choice{ID: "quit", Key: "s", Label: "stop it, and quit"}
		turn = m.conv.tr.Turn
	}
	m.screen = nil
	m.dialog = &asking{
		turn:   turn,
		Dialog: dialog.NewConfirm(m.theme, ask),
		done: func(a dialog.Answer) tea.Cmd {
			if a.Choice != "quit" {
				return nil
			}
			return m.leave(leave{})
		},
	}
	return nil
}

// leave stops what runs and ends the program when that has ended. What is
// written and was not sent is kept as a draft.
func (m *model) leave(l leave) tea.Cmd {
	if m.leaving != nil {
		return nil
	}
	l.ran = m.Busy()
	_, elsewhere := m.owner()
	l.goesOn = m.conv.tr.Active && elsewhere
	m.leaving, m.screen, m.dialog = &l, nil, nil
	ctx, e, save := m.ctx, m.o.Engine, m.saveDraft()
	if !l.ran && save == nil {
		return tea.Quit
	}
	atLast := tea.Tick(2*shutdownBound, func(time.Time) tea.Msg { return gone{} }) // whatever hangs
	return tea.Batch(m.spin(), atLast, func() tea.Msg {
		if save != nil {
			save() // nobody would see its error
		}
		if !l.ran {
			return gone{}
		}
		ctx, cancel := context.WithTimeout(ctx, shutdownBound)
		defer cancel()
		return shut{e.Shutdown(ctx)}
	})
}

// lastWords is how long the last events may take to arrive when all has ended.
const lastWords = 300 * time.Millisecond

func (m *model) onShut(s shut) tea.Cmd {
	if s.err != nil {
		m.leaving.because = errors.Join(m.leaving.because, s.err)
	}
	if m.conv.feed == nil {
		return tea.Quit
	}
	return tea.Tick(lastWords, func(time.Time) tea.Msg { return gone{} })
}

// result says how the program was left.
func (m *model) result() Result {
	t := &m.conv
	r := Result{Conversation: t.id, Shown: m.scrollback()}
	if t.id == "" {
		r.Conversation = m.before
	}
	if id := m.created.Load(); t.id == "" && id != nil { // we ended before we heard of it
		r.Conversation = *id
	}
	if r.Conversation == "" {
		return r
	}
	if t.tr.Active && m.leaving != nil && m.leaving.goesOn {
		r.Lines = append(r.Lines, fmt.Sprintf("turn %d continues in another process", t.tr.Turn), "to come back: fermata attach "+string(t.id))
		return r
	}
	if m.leaving != nil && m.leaving.ran {
		r.Lines = append(r.Lines, m.lastLine())
	}
	if n := len(t.tr.Inputs); n > 0 {
		r.Lines = append(r.Lines, screen.Count(n, "message")+" not delivered: in the composer when you resume")
	}
	r.Lines = append(r.Lines, "to resume: fermata resume "+string(r.Conversation))
	return r
}

// lastItems bounds what is left in the scrollback.
const lastItems = 300

// scrollback is the conversation as it was shown.
func (m *model) scrollback() []string {
	if m.inline() {
		return m.indent(m.view.Rest(time.Now())) // the rest is there
	}
	if !m.setting().PrintAtQuit || m.conv.id == "" {
		return nil
	}
	items := m.conv.tr.Items
	items = items[max(0, len(items)-lastItems):]
	var lines []string
	for _, it := range items {
		drawn := draw.Item(it, m.cellOptions(m.width))
		if len(drawn) > 0 {
			lines = append(append(lines, drawn...), "")
		}
	}
	return lines
}

// lastLine says what became of the turn that ran.
func (m *model) lastLine() string {
	tr := m.conv.tr
	switch {
	case len(m.conv.asks) > 0:
		return fmt.Sprintf("turn %d is waiting for approval; you will be asked again when you resume", tr.Turn)
	case tr.Active:
		return fmt.Sprintf("turn %d was being interrupted; details are shown when you resume", tr.Turn)
	}
	for i := len(tr.Items) - 1; i >= 0; i-- {
		if it := tr.Items[i]; it.Kind == transcript.End && it.Turn == tr.Turn {
			return it.Text
		}
	}
	return fmt.Sprintf("turn %d completed", tr.Turn)
}
