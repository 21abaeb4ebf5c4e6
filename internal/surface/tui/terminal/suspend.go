package terminal

import (
	"io"

	tea "charm.land/bubbletea/v2"
)

// A Suspender stops the process until the shell continues it.
type Suspender struct {
	Stop func() error // stops the process; it is called while the terminal is not ours. Nil: there is no shell

	asleep bool // we have stopped ourselves: that we continue is no news
}

// Suspend returns the terminal to the shell until that continues the process. then is called in Update afterwards.
func (s *Suspender) Suspend(then func(error) tea.Cmd) tea.Cmd {
	s.asleep = true
	return s.pause(s.Stop, then)
}

// Continued takes the terminal back after another process has stopped and continued this one.
func (s *Suspender) Continued(then func(error) tea.Cmd) tea.Cmd {
	if s.asleep {
		s.asleep = false
		return nil
	}
	return s.pause(func() error { return nil }, then)
}

// pause takes the terminal back after something was done without it, and draws all
// of it again.
func (s *Suspender) pause(do func() error, then func(error) tea.Cmd) tea.Cmd {
	run := func(io.Reader, io.Writer) error { return do() }
	return Exec(run, func(err error) tea.Msg {
		return Done{Then: func() tea.Cmd {
			if err != nil {
				s.asleep = false
			}
			return then(err)
		}}
	})
}
