package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// input takes what the user does: keys, pastes, the wheel.
func (m *model) input(msg tea.Msg) tea.Cmd {
	key, isKey := msg.(tea.KeyPressMsg)
	_, isPaste := msg.(tea.PasteMsg)
	if isKey && key.String() != "ctrl+c" || isPaste {
		m.disarm()
		m.hint.Clear()
		m.sel = draw.Selection{}
	}
	if isKey && key.String() != "esc" || isPaste {
		m.escaped = false
	}
	if m.leaving != nil {
		return nil
	}
	if m.burst.Held() && !composer.Writes(msg) { // first things first
		return tea.Batch(m.writeAll(m.burst.Release(m.comp)), m.input(msg))
	}
	if isKey && !composer.Writes(msg) {
		m.burst.End()
	}
	if isKey {
		if cmd, used := m.always(key); used {
			return cmd
		}
	}
	if m.overlay != nil {
		cmd, gone := m.overlay.Take(msg)
		if gone {
			m.overlay = nil
			m.CancelOpening() // what was chosen is not wanted any more
			cmd = tea.Batch(cmd, m.Flush())
		}
		return cmd
	}
	if isKey && m.ask.StepAside(key) {
		return nil
	}
	a, guard := m.ask.Take(msg) // a dialog that does not take keys yet counts them
	if a.Done || a.Used {
		return guard
	}
	if a.First.Code != 0 {
		guard = tea.Batch(guard, m.handleKey(a.First))
	}
	if wheel, ok := msg.(tea.MouseWheelMsg); ok {
		if m.view.Wheel(wheel) {
			return m.loadEarlier()
		}
		return nil
	}
	return tea.Batch(guard, m.handleKey(msg))
}

// always are the keys that mean the same everywhere.
func (m *model) always(key tea.KeyPressMsg) (tea.Cmd, bool) {
	var do func() tea.Cmd
	switch key.String() {
	case "ctrl+c":
		do = m.ctrlC
	case "ctrl+z":
		do = m.suspendProcess
	case "ctrl+l":
		do = func() tea.Cmd { return terminal.ClearScreen }
	default:
		return nil, false
	}
	if m.ask.Open != nil {
		m.ask.Open.Withdraw() // the user has thought better of it
	}
	return do(), true
}

// handleKey takes a key for the composer, unless it is an Enter that is held: see composer.Burst.
func (m *model) handleKey(msg tea.Msg) tea.Cmd {
	msgs, held := m.burst.Take(m.comp, msg)
	return tea.Batch(m.writeAll(msgs), held)
}

func (m *model) writeAll(msgs []tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, msg := range msgs {
		cmds = append(cmds, m.write(msg))
	}
	return tea.Batch(cmds...)
}

// write passes a key to the composer, and uses it if the composer does not.
func (m *model) write(msg tea.Msg) tea.Cmd {
	key, isKey := msg.(tea.KeyPressMsg)
	if isKey && m.comp.Empty() { // keys that would do nothing there
		switch {
		case key.String() == "up" && (len(m.conv.Transcript.Inputs) > 0 || m.Out.Waiting()):
			return m.EditPending(m.comp.Written)
		case key.String() == "home":
			return m.free(key)
		case key.String() == "?":
			return m.help("")
		}
	}
	if isKey && key.String() == "end" && (m.comp.Empty() || !m.view.Following()) {
		return m.free(key)
	}
	action, cmd := m.comp.Update(msg)
	switch a := action.(type) {
	case composer.Submit:
		return tea.Batch(cmd, m.submit(a, nil))
	case composer.Slash:
		return tea.Batch(cmd, m.command(a.Name, a.Args))
	case composer.Shell:
		return tea.Batch(cmd, m.shell(a.Line))
	case composer.Editor:
		return tea.Batch(cmd, m.do.RunEditor(m.until, m.comp.Text())) // while it runs nothing else would end it
	case composer.Unknown:
		return tea.Batch(cmd, m.Hint(theme.Warn, "there is no command /%s; see /help", a.Name))
	case composer.Failed:
		return tea.Batch(cmd, m.ShowError(a.Err))
	case nil:
		if isKey {
			return tea.Batch(cmd, m.free(key))
		}
	}
	return cmd
}

// free are the keys that the composer has no use for.
func (m *model) free(key tea.KeyPressMsg) tea.Cmd {
	if m.inline() {
		switch key.String() {
		case "ctrl+o":
			return m.unfold()
		case "alt+o", "pgup", "shift+up", "pgdown", "shift+down", "ctrl+home", "home", "ctrl+end", "end":
			return m.Hint(theme.Accent, "scroll with your terminal; Ctrl-O shows the last long item")
		}
	}
	switch key.String() {
	case "esc":
		if m.view.Following() {
			return m.escape()
		}
		m.view.Bottom() // as the screen says; the next one stops
	case "ctrl+d":
		if m.comp.Empty() {
			return m.quit()
		}
	case "shift+tab":
		return m.do.SetPlan(!m.Settings().Plan)
	case "ctrl+v":
		return m.do.AttachImage(m.comp.AddImage)
	case "alt+y":
		return m.do.CopyAnswer("")
	default:
		if m.view.Key(key.String()) {
			return m.loadEarlier()
		}
	}
	return nil
}

// mouse selects; what is selected is copied when the button is released.
func (m *model) mouse(msg tea.Msg) tea.Cmd {
	if m.overlay != nil || !m.takesMouse() {
		return nil
	}
	if m.sel.Mouse(msg) {
		return m.do.Copy(m.sel.Text(m.margin()), "selection")
	}
	return nil
}

// suspendProcess returns the terminal to the shell until that continues us.
func (m *model) suspendProcess() tea.Cmd {
	if m.suspend.Stop == nil {
		return m.Hint(theme.Warn, "there is no shell to return to")
	}
	return m.suspend.Suspend(m.onPaused)
}

// continued says that we run again after another process has stopped us.
type continued struct{}

func (m *model) onPaused(err error) tea.Cmd {
	if err != nil {
		return m.ShowError(err)
	}
	return nil
}

// armTime is how long the first Ctrl-C counts.
const armTime = 3 * time.Second

type disarm struct{ at time.Time }

// ctrlC stops what runs; what is written stays. When nothing runs it takes away what
// is written, which the history keeps. When there is nothing of either, or the stop
// does not come to an end, the second one quits.
func (m *model) ctrlC() tea.Cmd {
	if m.Busy() && !m.Stopping() {
		return m.Stop()
	}
	if !m.armed.IsZero() {
		return m.quit()
	}
	if m.overlay == nil && m.ask.Open == nil && !m.Busy() && !m.comp.Empty() {
		return tea.Batch(m.comp.Discard(), m.Hint(theme.Accent, "cleared · ↑ brings it back · Ctrl-C twice quits"))
	}
	m.armed = time.Now()
	at := m.armed
	return tea.Batch(
		m.Hint(theme.Accent, "press Ctrl-C again to quit; nothing is lost"),
		tea.Tick(armTime, func(time.Time) tea.Msg { return disarm{at} }),
	)
}

// disarm says that the next Ctrl-C does not quit any more: so the hint goes that says so.
func (m *model) disarm() {
	if !m.armed.IsZero() {
		m.armed = time.Time{}
		m.hint.Clear()
	}
}

// escape is the second Esc when there is nothing else for it to do.
func (m *model) escape() tea.Cmd {
	if m.Busy() || m.conv.ID == "" || !m.comp.Empty() {
		return m.Stop()
	}
	if !m.escaped {
		m.escaped = true
		return m.Hint(theme.Accent, "Esc again edits an earlier message")
	}
	m.escaped = false
	return m.do.Rewind()
}

// unfold shows the last item that was long, all of it. Inline it is no longer ours to unfold.
func (m *model) unfold() tea.Cmd {
	for _, it := range slices.Backward(m.conv.Transcript.Items) {
		if draw.Foldable(it, m.itemOptions(m.width)) {
			m.ShowPage(draw.NewPage(m.theme, "The last long item", func(width int) []string {
				o := m.itemOptions(width)
				o.Expanded = true
				return draw.Item(it, o)
			}))
			return nil
		}
	}
	return m.Hint(theme.Accent, "nothing is folded")
}
