// Package style says how lines stand out on a terminal that has colours.
package style

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Style is the number that a terminal knows a look by.
type Style string

// The styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Put gives each line the style by itself: pagers forget it at the end of one.
func (st Style) Put(s string) string {
	if st == Plain {
		return s
	}
	on := "\x1b[" + string(st) + "m"
	return on + strings.ReplaceAll(s, "\n", "\x1b[0m\n"+on) + "\x1b[0m"
}

// Status is the style of the end of a command or another call.
func Status(s transcript.Status) Style {
	switch s {
	case transcript.Failed:
		return Red
	case transcript.Interrupted, transcript.Declined:
		return Yellow
	}
	return Dim
}

// End is the style of the end of a turn.
func End(r p.EndReason) Style {
	if r == p.Failed || r == p.Crashed {
		return Red
	}
	return Yellow
}

// Step is the style of a step of a plan.
func Step(status string) Style {
	switch status {
	case "completed":
		return Green
	case "in_progress":
		return Bold
	}
	return Plain
}
