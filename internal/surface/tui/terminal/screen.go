package terminal

import (
	"bytes"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// A screen turns views into what the terminal has to be sent. It is used by one
// goroutine, and does no I/O.
type screen struct {
	env           []string
	profile       colorprofile.Profile
	width, height int
	method        ansi.Method
	synced        bool // the terminal shows what is between two marks at once

	pending bytes.Buffer // what is to be sent
	last    tea.View     // what the terminal was last set to
	shown   bool         // it was set to anything
	titled  bool         // it has a title of ours

	main *canvas // the part of the normal screen that is ours
	alt  *canvas // the alternate screen
}

// A canvas is what is on a screen of the terminal.
type canvas struct {
	buf    bytes.Buffer
	render *uv.TerminalRenderer
	cells  uv.ScreenBuffer
	lines  []string // that were drawn into the cells
	width  int      // of the terminal then
	y      int      // the line that the cursor is on
}

func newScreen(env []string, profile colorprofile.Profile) *screen {
	return &screen{env: env, profile: profile, width: 80, height: 24}
}

func (s *screen) newCanvas(full bool) *canvas {
	c := &canvas{}
	c.render = uv.NewTerminalRenderer(&c.buf, s.env)
	c.render.SetColorProfile(s.profile)
	c.render.SetTabStops(-1)
	c.render.SetScrollOptim(full)
	c.render.SetFullscreen(full)
	c.render.SetRelativeCursor(!full)
	if full {
		c.render.Erase()
	} else {
		c.render.SetPosition(0, 0) // it begins where the cursor is
	}
	c.cells = uv.NewScreenBuffer(0, 0)
	c.cells.Method = s.method
	return c
}

// begin asks the terminal what it can do.
func (s *screen) begin(env []string) {
	if queried(env) {
		s.write(ansi.RequestModeSynchronizedOutput + ansi.RequestModeUnicodeCore)
	}
}

// queried reports whether the terminal can be asked: some print the question, and over
// SSH the answer may come too late.
func queried(env []string) bool {
	e := uv.Environ(env)
	kind := e.Getenv("TERM")
	for _, known := range []string{"ghostty", "wezterm", "alacritty", "kitty", "rio"} {
		if strings.Contains(kind, known) {
			return true
		}
	}
	_, ssh := e.LookupEnv("SSH_TTY")
	return !ssh && !strings.Contains(e.Getenv("TERM_PROGRAM"), "Apple") && kind != "linux"
}

func (s *screen) onMode(msg tea.ModeReportMsg) {
	switch {
	case msg.Mode == ansi.ModeSynchronizedOutput:
		s.synced = msg.Value.IsReset()
	case msg.Mode == ansi.ModeUnicodeCore && !msg.Value.IsNotRecognized() && !msg.Value.IsPermanentlyReset():
		s.method = ansi.GraphemeWidth
		s.write(ansi.SetModeUnicodeCore)
		s.clear()
	}
}

// write sends something that is not drawn.
func (s *screen) write(text string) { s.pending.WriteString(text) }

// take returns what is to be sent.
func (s *screen) take() []byte {
	if s.pending.Len() == 0 {
		return nil
	}
	data := bytes.Clone(s.pending.Bytes())
	s.pending.Reset()
	return data
}

// resize says how large the terminal is.
func (s *screen) resize(w, h int) {
	if w == s.width && h == s.height {
		return
	}
	s.width, s.height = w, h
	s.clear()
}

// clear forgets what is on the screen, so that all of it is drawn again.
func (s *screen) clear() {
	s.alt = nil
	if !s.last.AltScreen { // else when it is seen again
		s.erase()
	}
}

// erase takes what is ours off the normal screen, and stands where it began. A terminal that
// has become narrower has broken the lines that are too long for it now.
func (s *screen) erase() {
	c := s.main
	if c == nil {
		return
	}
	up := 0
	for _, line := range c.lines[:min(c.y, len(c.lines))] {
		up += max(1, (s.method.StringWidth(line)+s.width-1)/max(1, s.width))
	}
	s.write("\r")
	if up > 0 {
		s.write(ansi.CursorUp(min(up, s.height-1)))
	}
	s.write(ansi.EraseEntireLine)
	if len(c.lines) > 1 { // tmux puts what is erased from the top of the screen on into its scrollback
		s.write(ansi.CursorDown(1) + ansi.EraseScreenBelow + ansi.CursorUp(1))
	}
	s.main = nil
}

// draw makes the terminal show a view.
func (s *screen) draw(v tea.View) {
	var head, tail string // for the terminal as a whole
	if !s.shown {
		head, tail = s.enter(v), ""
	} else {
		if v.AltScreen && !s.last.AltScreen {
			s.erase() // it is not known where it is if the size changes meanwhile
		}
		head = s.modes(v)
	}
	c := s.canvas(v)
	changed := c.set(v.Content, s.width, s.height)
	if !changed && head == "" && cursorEqual(v.Cursor, s.last.Cursor) && s.shown {
		s.last = v
		return
	}
	c.render.Render(c.cells.RenderBuffer)
	switch {
	case v.Cursor != nil:
		c.render.MoveTo(v.Cursor.X, v.Cursor.Y)
		c.y = v.Cursor.Y
	case !v.AltScreen: // it must be known where it is
		c.y = max(0, len(c.lines)-1)
		c.render.MoveTo(0, c.y)
	}
	_ = c.render.Flush() // to a buffer
	if s.synced {
		head, tail = head+ansi.SetModeSynchronizedOutput, ansi.ResetModeSynchronizedOutput
	}
	if c.buf.Len() > 0 || head != "" || !cursorEqual(v.Cursor, s.last.Cursor) {
		s.write(head)
		if !s.synced {
			s.write(ansi.ResetModeTextCursorEnable) // else it is seen jumping about
		}
		s.pending.Write(c.buf.Bytes())
		s.write(cursorMode(v.Cursor) + tail)
	}
	c.buf.Reset()
	s.last, s.shown = v, true
}

func cursorMode(c *tea.Cursor) string {
	if c == nil {
		return ansi.ResetModeTextCursorEnable
	}
	return ansi.SetModeTextCursorEnable
}

func cursorEqual(a, b *tea.Cursor) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.X == b.X && a.Y == b.Y
}

// canvas is the one that a view is drawn on.
func (s *screen) canvas(v tea.View) *canvas {
	if v.AltScreen {
		if s.alt == nil {
			s.alt = s.newCanvas(true)
		}
		return s.alt
	}
	if c := s.main; c != nil && (c.width != s.width || len(c.lines) != 1+strings.Count(v.Content, "\n")) {
		s.erase()
	}
	if s.main == nil {
		s.main = s.newCanvas(false)
		s.main.width = s.width
	}
	return s.main
}

// set draws a text into the cells, those of its lines that have changed. On the normal
// screen there are as many as the text has, on the alternate one as many as fit.
func (c *canvas) set(text string, width, height int) bool {
	lines := strings.Split(text, "\n")
	if len(lines) > height {
		lines = lines[len(lines)-height:]
	}
	if c.render.Fullscreen() {
		for len(lines) < height {
			lines = append(lines, "")
		}
	}
	changed := false
	if c.cells.Width() != width || c.cells.Height() != len(lines) {
		if c.cells.Width() > 0 && c.cells.Height() > 0 {
			c.render.Erase()
		}
		c.cells.Touched = nil
		c.cells.Resize(width, len(lines))
		c.render.Resize(width, len(lines))
		c.lines, changed = nil, true
	}
	for y, line := range lines {
		if y < len(c.lines) && c.lines[y] == line {
			continue
		}
		changed = true
		uv.NewStyledString(line).Draw(c.cells, uv.Rect(0, y, width, 1))
	}
	c.lines = lines
	return changed
}

// print puts lines above what is ours on the normal screen.
func (s *screen) print(lines []string) {
	if len(lines) == 0 || s.last.AltScreen {
		return
	}
	s.erase()
	for _, line := range lines {
		s.write(line + ansi.ResetStyle + "\r\n")
	}
}
