package tui

import (
	"io"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A pause is the time in which the terminal is the shell's. Bubble Tea has one of its
// own, which waits for ever where there is no shell that could go on with us.
type pause struct{ do func() error }

func (s pause) Run() error          { return s.do() }
func (s pause) SetStdin(io.Reader)  {}
func (s pause) SetStdout(io.Writer) {}
func (s pause) SetStderr(io.Writer) {}

// A program has the terminal for itself.
type program struct{ *exec.Cmd }

func (p program) SetStdin(r io.Reader)  { p.Stdin = r }
func (p program) SetStdout(w io.Writer) { p.Stdout = w }
func (p program) SetStderr(w io.Writer) { p.Stderr = w }

// settle is how long drawing takes to stop.
const settle = 100 * time.Millisecond

// What is away is done without the terminal. Bubble Tea stops to draw before it and
// begins again after it, with one clock for both. What stops is a goroutine that nobody
// waits for: if it comes after the beginning, nothing is drawn ever again. So it has its
// time first; later may be too late, for what is done may be to stop all of us.
type away struct{ tea.ExecCommand }

func (a away) Run() error {
	time.Sleep(settle)
	return a.ExecCommand.Run()
}

// suspend gives the terminal to the shell until that goes on with us.
func (m *model) suspend() tea.Cmd {
	if m.o.Suspend == nil {
		return m.hintf(theme.Warn, "there is no shell to return to")
	}
	m.asleep = true
	return m.pause(m.o.Suspend)
}

// continued says that we go on after we were stopped.
type continued struct{}

// onContinued takes the terminal back, unless we had given it away.
func (m *model) onContinued() tea.Cmd {
	if m.asleep {
		m.asleep = false
		return nil
	}
	return m.pause(func() error { return nil })
}

// pause takes the terminal back after something was done without it, and draws all
// of it again.
func (m *model) pause(do func() error) tea.Cmd {
	return tea.Exec(away{pause{do}}, func(err error) tea.Msg {
		return answer{func() tea.Cmd {
			if err != nil {
				m.asleep = false
				return tea.Batch(tea.ClearScreen, m.complain(err))
			}
			return tea.ClearScreen
		}}
	})
}
