package composer

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// burstTime is how soon after one another keys are not pressed by hand. What is known to be
// a paste may come in pieces, as over a network.
const (
	burstTime = 10 * time.Millisecond
	pieceTime = 60 * time.Millisecond
)

// A Burst is a paste that comes as keys, as in GNU screen, which does not pass on the brackets of a paste.
// An Enter in it would send, or run, what is pasted line by line: so one that
// comes too soon is held until it is known whether anything follows.
type Burst struct {
	Unbracketed bool // the terminal may type what is pasted; else nothing is held

	last    time.Time // when the last key came that writes something
	pasting bool      // an Enter was followed by more
	held    bool      // an Enter is
	inPaste bool      // and it belongs to a paste of several lines
	n       int       // counts the holds
}

// BurstOver is the message that nothing came after an Enter that was held.
type BurstOver struct{ n int }

// Writes reports whether a message is a key that may be part of a paste.
func Writes(msg tea.Msg) bool {
	key, ok := msg.(tea.KeyPressMsg)
	return ok && (key.Text != "" || key.Keystroke() == "enter" || key.Keystroke() == "tab")
}

// Held reports whether an Enter is held.
func (b *Burst) Held() bool { return b.held }

// End says that a key came that is in no paste: what follows was typed.
func (b *Burst) End() { b.last, b.pasting = time.Time{}, false }

// Take takes a message for the composer. It returns the messages that the composer is to get now, and the timer of
// an Enter that is held.
func (b *Burst) Take(c *Composer, msg tea.Msg) ([]tea.Msg, tea.Cmd) {
	if !b.Unbracketed || !Writes(msg) {
		return []tea.Msg{msg}, nil
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
		c.Insert("\n")
	}
	first := b.Release(c)
	switch name := msg.(tea.KeyPressMsg).Keystroke(); {
	case name == "enter" && soon:
		b.held, b.inPaste = true, b.pasting
		b.n++
		over := BurstOver{b.n}
		return first, tea.Tick(wait, func(time.Time) tea.Msg { return over })
	case name == "tab" && b.pasting:
		c.Insert("\t")
		return first, nil
	}
	return append(first, msg), nil
}

// Release ends the hold of an Enter, and returns it if the composer is to get it. The one at the end of a paste of several
// lines ends its last line: it was not pressed.
func (b *Burst) Release(c *Composer) []tea.Msg {
	if !b.held {
		return nil
	}
	b.held = false
	if b.inPaste {
		c.Insert("\n")
		return nil
	}
	return []tea.Msg{tea.KeyPressMsg{Code: tea.KeyEnter}}
}

// OnOver is Release for the timer of an Enter, unless another one is held by now.
func (b *Burst) OnOver(c *Composer, msg BurstOver) []tea.Msg {
	if msg.n != b.n {
		return nil
	}
	return b.Release(c)
}
