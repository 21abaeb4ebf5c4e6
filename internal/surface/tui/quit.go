package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// leave says that the program has to end.
type leave struct {
	because   error // the signal; nil if the person wants it
	ran       bool  // a turn ran when it came
	continues bool  // and it continues in another process
}

// shut says that nothing runs any more, or that the bound is over.
type shut struct{ err error }

// gone ends the program.
type gone struct{}

// quit ends the program, after a question if something runs.
func (m *model) quit() tea.Cmd {
	owner, elsewhere := m.OtherOwner()
	if elsewhere && m.leaving == nil && m.conv.Transcript.Active {
		return m.askToDetach(owner)
	}
	var running []string
	for _, job := range m.conv.Transcript.Running {
		if !elsewhere {
			running = append(running, commands.Job(job))
		}
	}
	leftOpen := slices.Clone(m.LeftOpen)
	if len(leftOpen) == 0 || m.leaving != nil {
		return m.askToQuit(running)
	}
	ctx, e := m.Context(), m.Engine()
	return terminal.Do(func() func() tea.Cmd {
		others := commands.JobsOf(ctx, e, leftOpen)
		return func() tea.Cmd { return m.askToQuit(append(running, others...)) }
	})
}

func (m *model) askToQuit(running []string) tea.Cmd {
	n := len(running)
	if n == 0 && !m.RunsTurn() || m.leaving != nil {
		return m.leave(leave{})
	}
	var turn p.TurnID
	ask := dialog.Confirm{
		Title: humanize.Count(n, "background command") + " still running", Body: append([]string{"Quitting stops what still runs:"}, running...), Default: 1,
		Choices: []dialog.Choice{{ID: "quit", Key: "y", Label: "stop it, and quit"}, {ID: "stay", Key: "n", Label: "stay"}},
	}
	if m.RunsTurn() {
		ask.Title = fmt.Sprintf("Turn %d is running", m.conv.Transcript.Turn)
		ask.Body = append([]string{"Quitting stops it; the conversation can be resumed."}, running...)
		ask.Choices[0] = dialog.Choice{ID: "quit", Key: "s", Label: "stop it, and quit"}
		turn = m.conv.Transcript.Turn
	}
	m.Ask(ask, func(choice string) tea.Cmd {
		if choice != "quit" {
			return nil
		}
		return m.leave(leave{})
	})
	m.dialog.turn = turn
	return nil
}

// askToDetach asks what becomes of a turn that another process runs.
func (m *model) askToDetach(o app.Owner) tea.Cmd {
	id, turn := m.conv.ID, m.conv.Transcript.Turn
	body := []string{"Another process runs it, so it can continue without this terminal:", "fermata attach " + string(id)}
	quit := dialog.Choice{ID: "leave", Key: "l", Label: "leave it running, and quit"}
	if !o.Serves {
		body = []string{fmt.Sprintf("Process %d runs it, and stops it when that one quits.", o.PID)}
		quit = dialog.Choice{ID: "leave", Key: "q", Label: "quit only this terminal"}
	}
	m.Ask(dialog.Confirm{
		Title: fmt.Sprintf("Turn %d has not ended", turn), Body: body,
		Choices: []dialog.Choice{quit, {ID: "stop", Key: "s", Label: "stop it, and quit"}, {ID: "stay", Key: "n", Label: "stay"}},
	}, func(choice string) tea.Cmd {
		ctx, e := m.Context(), m.Engine()
		return map[string]tea.Cmd{"leave": func() tea.Msg { return leave{} }, "stop": func() tea.Msg {
			follow.EndTurn(ctx, e, id, turn, shutdownBound)
			return leave{}
		}}[choice]
	})
	m.dialog.turn = turn
	return nil
}

// leave stops what runs and ends the program when that has ended. What is
// written and was not sent is kept as a draft.
func (m *model) leave(l leave) tea.Cmd {
	if m.leaving != nil {
		return nil
	}
	l.ran = m.Busy()
	_, elsewhere := m.OtherOwner()
	l.continues = m.conv.Transcript.Active && elsewhere
	m.leaving, m.overlay, m.dialog = &l, nil, nil
	ctx, e, save := m.Context(), m.Engine(), m.saveDraft()
	if !l.ran && save == nil {
		return tea.Quit
	}
	atLast := tea.Tick(2*shutdownBound, func(time.Time) tea.Msg { return gone{} }) // whatever hangs
	return tea.Batch(m.spin(), atLast, func() tea.Msg {
		if save != nil {
			save() // its error would not be seen
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
	if m.conv.Feed == nil {
		return tea.Quit
	}
	return tea.Tick(lastWords, func(time.Time) tea.Msg { return gone{} })
}

// result says how the program was left.
func (m *model) result() Result {
	t := m.conv.Transcript
	r := Result{Conversation: m.Last(), Shown: m.scrollback()}
	if r.Conversation == "" {
		return r
	}
	if t.Active && m.leaving != nil && m.leaving.continues {
		r.Lines = append(r.Lines, fmt.Sprintf("turn %d continues in another process", t.Turn), "to come back: fermata attach "+string(m.conv.ID))
		return r
	}
	if m.leaving != nil && m.leaving.ran {
		r.Lines = append(r.Lines, m.lastLine())
	}
	if n := len(t.Inputs); n > 0 {
		r.Lines = append(r.Lines, humanize.Count(n, "message")+" not delivered: in the composer when you resume")
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
	if !m.setting().PrintAtQuit || m.conv.ID == "" {
		return nil
	}
	items := m.conv.Transcript.Items
	items = items[max(0, len(items)-lastItems):]
	var lines []string
	for _, it := range items {
		drawn := draw.Item(it, m.itemOptions(m.width))
		if len(drawn) > 0 {
			lines = append(append(lines, drawn...), "")
		}
	}
	return lines
}

// lastLine says what became of the turn that ran.
func (m *model) lastLine() string {
	tr := m.conv.Transcript
	switch {
	case len(m.conv.Approvals) > 0:
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
