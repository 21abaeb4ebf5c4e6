package terminal

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// keys are how keys are reported: distinguished where the terminal can.
const (
	keysOn  = ansi.SetModifyOtherKeys2
	keysOff = ansi.ResetModifyOtherKeys
)

// enter makes the terminal ours, for the first view.
func (s *screen) enter(v tea.View) string {
	out := ""
	if v.AltScreen {
		out += ansi.SetModeAltScreenSaveCursor
	}
	out += keysOn + ansi.PushKittyKeyboard(1) + ansi.SetModeBracketedPaste
	s.last = tea.View{AltScreen: v.AltScreen}
	return out + s.modes(v)
}

// modes says what differs from the state that the terminal was last set to.
func (s *screen) modes(v tea.View) string {
	out := ""
	if v.AltScreen != s.last.AltScreen {
		out += keysOff + ansi.PopKittyKeyboard(1) // each screen has its own
		if v.AltScreen {
			out += ansi.SetModeAltScreenSaveCursor
			s.alt = nil
		} else {
			out += ansi.ResetModeAltScreenSaveCursor
		}
		out += keysOn + ansi.PushKittyKeyboard(1)
	}
	if v.MouseMode != s.last.MouseMode {
		out += mouseOff
		if v.MouseMode != tea.MouseModeNone {
			out += ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr
		}
	}
	switch {
	case v.ReportFocus && !s.last.ReportFocus:
		out += ansi.SetModeFocusEvent
	case !v.ReportFocus && s.last.ReportFocus:
		out += ansi.ResetModeFocusEvent
	}
	if v.WindowTitle != s.last.WindowTitle {
		if !s.titled {
			out += pushTitle
			s.titled = true
		}
		out += ansi.SetWindowTitle(v.WindowTitle)
	}
	return out
}

const (
	mouseOff = ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseAnyEvent + ansi.ResetModeMouseExtSgr

	// The terminal remembers the title, if it can.
	pushTitle = "\x1b[22;2t"
	popTitle  = "\x1b[23;2t"
)

// end makes the terminal what it was.
func (s *screen) end() {
	if !s.shown {
		return
	}
	v := s.last
	if !v.AltScreen {
		s.erase()
	}
	s.write(keysOff + ansi.PopKittyKeyboard(1))
	if v.AltScreen {
		s.write(ansi.ResetModeAltScreenSaveCursor)
	}
	if v.MouseMode != tea.MouseModeNone {
		s.write(mouseOff)
	}
	if v.ReportFocus {
		s.write(ansi.ResetModeFocusEvent)
	}
	if s.titled {
		s.write(ansi.SetWindowTitle("") + popTitle)
		s.titled = false
	}
	if s.method == ansi.GraphemeWidth {
		s.write(ansi.ResetModeUnicodeCore)
	}
	s.write(ansi.ResetModeBracketedPaste + ansi.SetModeTextCursorEnable)
	s.shown, s.last, s.main, s.alt = false, tea.View{}, nil, nil
}

// again is called when the terminal is ours again.
func (s *screen) again() {
	if s.method == ansi.GraphemeWidth {
		s.write(ansi.SetModeUnicodeCore)
	}
}
