package screen

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	tickTime = 100 * time.Millisecond
	slowTick = time.Second // for clocks alone
)

// A Spinner turns while something is at work, and costs nothing while nothing is.
type Spinner struct {
	Frame int // which picture it shows

	turns bool // a Tick is on its way
}

// Tick turns the spinner.
type Tick struct{}

// Turn is the command that turns the spinner next; nil if it turns already, or if nothing is at work. A clock alone
// turns it slowly.
func (s *Spinner) Turn(busy, clock bool) tea.Cmd {
	every := tickTime
	switch {
	case s.turns:
		return nil
	case busy:
	case clock:
		every = slowTick
	default:
		return nil
	}
	s.turns = true
	return tea.Tick(every, func(time.Time) tea.Msg { return Tick{} })
}

// OnTick shows the next picture.
func (s *Spinner) OnTick() {
	s.turns = false
	s.Frame++
}
