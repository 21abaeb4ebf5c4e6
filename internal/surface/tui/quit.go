package tui

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
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
	if len(running) == 0 && !m.RunsTurn() || m.leaving != nil {
		return m.leave(leave{})
	}
	turn := p.TurnID(0) // none of this process
	if m.RunsTurn() {
		turn = m.conv.Transcript.Turn
	}
	m.Ask(commands.QuitQuestion(turn, running), func(choice string) tea.Cmd {
		if choice != "quit" {
			return nil
		}
		return m.leave(leave{})
	})
	m.ask.Open.Turn = turn
	return nil
}

// askToDetach asks what becomes of a turn that another process runs.
func (m *model) askToDetach(o app.Owner) tea.Cmd {
	id, turn := m.conv.ID, m.conv.Transcript.Turn
	m.Ask(commands.DetachQuestion(id, turn, o), func(choice string) tea.Cmd {
		ctx, e := m.Context(), m.Engine()
		return map[string]tea.Cmd{"leave": func() tea.Msg { return leave{} }, "stop": func() tea.Msg {
			follow.EndTurn(ctx, e, id, turn, shutdownBound)
			return leave{}
		}}[choice]
	})
	m.ask.Open.Turn = turn
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
	m.leaving, m.overlay, m.ask.Open = &l, nil, nil
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
	l := leave{}
	if m.leaving != nil {
		l = *m.leaving
	}
	return Result{Conversation: m.Last(), Lines: m.LastLines(l.ran, l.continues), Shown: m.scrollback()}
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
	return draw.Items(items[max(0, len(items)-lastItems):], m.itemOptions(m.width))
}
