package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// burstTime is how soon after one another no person presses keys. What is known to be
// a paste may come in pieces, as over a network.
const (
	burstTime = 10 * time.Millisecond
	pieceTime = 60 * time.Millisecond
)

// A burst is a paste that comes as keys, as in GNU screen, which keeps the brackets to
// itself. An Enter in it would send, or run, what is pasted line by line: so one that
// comes too soon is held until it is known whether anything follows.
type burst struct {
	last    time.Time // when the last key came that writes something
	pasting bool      // an Enter was followed by more
	held    bool      // an Enter is
	inPaste bool      // and it belongs to a paste of several lines
	n       int       // counts the holds
}

// end says that a key came that is in no paste: what follows was typed.
func (b *burst) end() { b.last, b.pasting = time.Time{}, false }

// unhold says that nothing came after an Enter.
type unhold struct{ n int }

// typed gives a key to the composer, unless it is an Enter to be held.
func (m *model) typed(msg tea.Msg) tea.Cmd {
	b := &m.burst
	if !m.o.Unbracketed || !writes(msg) {
		return m.write(msg)
	}
	now := time.Now()
	wait := burstTime
	if b.pasting {
		wait = pieceTime
	}
	soon := now.Sub(b.last) < wait
	b.last, b.pasting = now, soon && (b.pasting || b.held)
	if b.held && soon {
		b.held = false
		m.comp.Insert("\n")
	}
	first := m.unhold()
	switch name := msg.(tea.KeyPressMsg).Keystroke(); {
	case name == "enter" && soon:
		b.held, b.inPaste = true, b.pasting
		b.n++
		n := b.n
		return tea.Batch(first, tea.Tick(wait, func(time.Time) tea.Msg { return unhold{n} }))
	case name == "tab" && b.pasting:
		m.comp.Insert("\t")
		return first
	}
	return tea.Batch(first, m.write(msg))
}

// writes reports whether a message is a key that may be part of a paste.
func writes(msg tea.Msg) bool {
	key, ok := msg.(tea.KeyPressMsg)
	return ok && (key.Text != "" || key.Keystroke() == "enter" || key.Keystroke() == "tab")
}

// unhold lets an Enter do what it does. The one at the end of a paste of several lines ends its last line: nobody has
// pressed it.
func (m *model) unhold() tea.Cmd {
	if !m.burst.held {
		return nil
	}
	m.burst.held = false
	if m.burst.inPaste {
		m.comp.Insert("\n")
		return nil
	}
	return m.write(tea.KeyPressMsg{Code: tea.KeyEnter})
}
