package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// wheelLines is how far a notch of the mouse wheel scrolls.
const wheelLines = 3

// input takes what a person does: keys, pastes, the wheel.
func (m *model) input(msg tea.Msg) tea.Cmd {
	key, isKey := msg.(tea.KeyPressMsg)
	_, isPaste := msg.(tea.PasteMsg)
	if isKey && key.String() != "ctrl+c" || isPaste {
		m.disarm()
		m.clearHint()
		m.sel = draw.Selection{}
	}
	if isKey && key.String() != "esc" || isPaste {
		m.escaped = false
	}
	if m.leaving != nil {
		return nil
	}
	if m.burst.held && !writes(msg) { // first things first
		return tea.Batch(m.unhold(), m.input(msg))
	}
	if isKey && !writes(msg) {
		m.burst.end()
	}
	if isKey {
		if cmd, used := m.always(key); used {
			return cmd
		}
	}
	if m.screen != nil {
		cmd, gone := m.screen.update(msg)
		if gone {
			m.screen = nil
			m.cancelOpening() // what was chosen is not wanted any more
			cmd = tea.Batch(cmd, m.flush())
		}
		return cmd
	}
	if isKey && m.stepAside(key) {
		return nil
	}
	var guard tea.Cmd // a dialog that does not take keys yet counts them
	if d := m.dialog; d != nil {
		a, cmd := d.Update(msg)
		if a.Done {
			m.dialog = nil
			return tea.Batch(cmd, d.done(a))
		}
		if a.Used {
			return cmd
		}
		guard = cmd
		if a.First.Code != 0 {
			guard = tea.Batch(guard, m.typed(a.First))
		}
	}
	if wheel, ok := msg.(tea.MouseWheelMsg); ok {
		return m.wheel(wheel)
	}
	return tea.Batch(guard, m.typed(msg))
}

// stepAside lets an approval wait while a command after a slash is typed. Esc
// goes back to it.
func (m *model) stepAside(key tea.KeyPressMsg) (used bool) {
	switch d := m.dialog; {
	case m.aside && key.String() == "esc":
		m.comp.SetText("")
		return true
	case d != nil && d.item != nil && key.String() == "/" && m.comp.Empty() && d.Listening():
		m.dialog, m.aside = nil, true
	}
	return false
}

// always are the keys that mean the same everywhere.
func (m *model) always(key tea.KeyPressMsg) (tea.Cmd, bool) {
	var do func() tea.Cmd
	switch key.String() {
	case "ctrl+c":
		do = m.ctrlC
	case "ctrl+z":
		do = m.suspend
	case "ctrl+l":
		do = func() tea.Cmd { return terminal.ClearScreen }
	default:
		return nil, false
	}
	if m.dialog != nil {
		m.dialog.Withdraw() // whoever presses them has thought better of it
	}
	return do(), true
}

func (m *model) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	switch msg.Button {
	case tea.MouseWheelUp:
		return m.scrollUp(func() { m.view.ScrollBy(-wheelLines) })
	case tea.MouseWheelDown:
		m.view.ScrollBy(wheelLines)
	}
	return nil
}

// scrollUp scrolls, and loads what comes before when the top is reached.
func (m *model) scrollUp(scroll func()) tea.Cmd {
	above := m.view.Below()
	scroll()
	if m.view.Below() == above && !m.view.Following() {
		return m.loadEarlier()
	}
	return nil
}

// write gives a key to the composer, and uses it if the composer does not.
func (m *model) write(msg tea.Msg) tea.Cmd {
	key, isKey := msg.(tea.KeyPressMsg)
	if isKey && m.comp.Empty() { // keys that would do nothing there
		switch {
		case key.String() == "up" && (len(m.conv.tr.Inputs) > 0 || m.out.Waiting()):
			return m.editPending()
		case key.String() == "home":
			return m.free(key)
		case key.String() == "?":
			return m.help()
		}
	}
	if isKey && key.String() == "end" && (m.comp.Empty() || !m.view.Following()) {
		return m.free(key)
	}
	action, cmd := m.comp.Update(msg)
	switch a := action.(type) {
	case composer.Submit:
		return tea.Batch(cmd, m.submit(a))
	case composer.Slash:
		return tea.Batch(cmd, m.command(a.Name, a.Args))
	case composer.Shell:
		return tea.Batch(cmd, m.shell(a.Line))
	case composer.Editor:
		return tea.Batch(cmd, commands.RunEditor(m.asked, m, m.o.Editor, m.comp.Text())) // while it runs nothing else would end it
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
	case "ctrl+o":
		m.view.Toggle(false)
	case "shift+tab":
		return m.togglePlan()
	case "ctrl+v":
		return commands.AttachImage(m, m.o.ClipboardImage, m.comp.AddImage)
	case "alt+y":
		return commands.CopyAnswer(m, "")
	case "alt+o":
		m.view.Toggle(true)
	case "pgup", "shift+up":
		return m.scrollUp(m.view.PageUp)
	case "pgdown", "shift+down":
		m.view.PageDown()
	case "ctrl+home", "home":
		m.view.Top()
		return m.loadEarlier()
	case "ctrl+end", "end":
		m.view.Bottom()
	}
	return nil
}
