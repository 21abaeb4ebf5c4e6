// Package theme says how things look: a [Role] is what a piece of text is, and a
// [Theme] paints it. No other package writes an escape code.
package theme

import "strings"

// A Role is what a piece of text is.
type Role int

// The roles.
const (
	Text Role = iota
	Dim
	Bold
	Accent
	User // what the user wrote
	OK
	Warn
	Error
	Added   // a line of a diff
	Removed // a line of a diff
	Code
	Heading
	Link
	Quote
	Border
	Selected
	Keyword
	String
	Comment
	Number
	Italic
	Strike
	roles // how many there are
)

// Options choose a theme.
type Options struct {
	Dark  bool // the background is dark
	Color bool // the terminal has colours, and the user wants them
}

// With returns the options changed by the setting tui.theme.
func (o Options) With(setting string) Options {
	switch setting {
	case "dark":
		o.Dark = true
	case "light":
		o.Dark = false
	case "none":
		o.Color = false
	}
	return o
}

// A Theme paints text. It is immutable.
type Theme struct {
	marks [roles][]mark
	color bool
}

// A mark is one attribute: how it is switched on and off again. The code that
// switches it off leaves other attributes alone, so marks can be nested.
type mark struct{ on, off string }

// New makes a theme.
func New(o Options) *Theme {
	t := &Theme{color: o.Color}
	for r, l := range looks {
		t.marks[r] = append(t.marks[r], l.attributes...)
		c := l.light
		if o.Dark {
			c = l.dark
		}
		if o.Color && c != "" {
			t.marks[r] = append(t.marks[r], mark{"\x1b[38;5;" + c + "m", "\x1b[39m"})
		}
	}
	return t
}

// Paint gives s the look of r, each of its lines by itself. Text that is painted
// already keeps its own look inside. Without colours only bold, italic,
// underline, strike-through and reverse are left.
func (t *Theme) Paint(r Role, s string) string {
	if s == "" || t == nil || r < 0 || r >= roles || len(t.marks[r]) == 0 {
		return s
	}
	for i := len(t.marks[r]) - 1; i >= 0; i-- {
		m := t.marks[r][i]
		s = strings.ReplaceAll(s, m.off, m.off+m.on) // it ended inside; here it goes on
		if strings.Contains(s, "\n") {
			s = strings.ReplaceAll(s, "\n", m.off+"\n"+m.on)
		}
		s = m.on + s + m.off
	}
	return s
}

// Colored reports whether the theme has colours. What differs in colour alone
// needs a sign besides if it has none.
func (t *Theme) Colored() bool { return t != nil && t.color }
