package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/markdown"
	"github.com/fermata-agent/fermata/internal/surface/tui/selection"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/words"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// mouse selects; what is selected is copied when the button is released.
func (m *model) mouse(msg tea.Msg) tea.Cmd {
	if m.screen != nil || !m.takesMouse() {
		return nil
	}
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		m.sel = selection.Selection{}
		if msg.Button == tea.MouseLeft {
			m.sel = selection.Begin(msg.X, msg.Y)
		}
	case tea.MouseMotionMsg:
		m.sel.Drag(msg.X, msg.Y)
	case tea.MouseReleaseMsg:
		if m.sel.Release() {
			return m.copyText(m.sel.Text(m.margin()), "selection")
		}
	}
	return nil
}

// copyText gives a text to the terminal's clipboard.
func (m *model) copyText(text, what string) tea.Cmd {
	if text == "" {
		return nil
	}
	return tea.Batch(tea.Raw(ansi.SetSystemClipboard(text)), m.hintf(theme.OK, "copied the %s (%s)", what, words.Count(len([]rune(text)), "character")))
}

// pasteImage attaches the image in the clipboard, where there is a tool that reads it. Text is pasted
// by the terminal.
func (m *model) pasteImage() tea.Cmd {
	ctx, f := m.ctx, m.o.ClipboardImage
	if f == nil {
		return nil
	}
	return func() tea.Msg {
		file, err := f(ctx)
		return answer{func() tea.Cmd {
			if err != nil {
				return m.showError(err)
			}
			m.comp.AddImage(file)
			return nil
		}}
	}
}

// copyAnswer copies the last answer, or one of its code blocks.
func (m *model) copyAnswer(args string) tea.Cmd {
	items := m.conv.tr.Items
	for i := len(items) - 1; i >= 0; i-- {
		if it := items[i]; it.Kind == transcript.Message && strings.TrimSpace(it.Text) != "" {
			if args == "" {
				return m.copyText(it.Text, "last answer")
			}
			blocks := markdown.CodeBlocks(it.Text)
			n, err := strconv.Atoi(args)
			if err != nil || n < 1 || n > len(blocks) {
				return m.hintf(theme.Warn, "/copy N: the last answer has %s", words.Count(len(blocks), "code block"))
			}
			return m.copyText(blocks[n-1], fmt.Sprintf("code block %d", n))
		}
	}
	return m.hintf(theme.Accent, "there is no answer to copy yet")
}
