package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// Copy copies a text to the terminal's clipboard. what names it for the user.
func (s Set) Copy(text, what string) tea.Cmd {
	if text == "" {
		return nil
	}
	return tea.Batch(tea.Raw(ansi.SetSystemClipboard(text)), s.Hint(theme.OK, "copied the %s (%s)", what, humanize.Count(len([]rune(text)), "character")))
}

// CopyAnswer copies the last answer, or one of its code blocks.
func (s Set) CopyAnswer(args string) tea.Cmd {
	_, tr := s.Conversation()
	for _, it := range slices.Backward(tr.Items) {
		if it.Kind != transcript.Message || strings.TrimSpace(it.Text) == "" {
			continue
		}
		if args == "" {
			return s.Copy(it.Text, "last answer")
		}
		blocks := draw.CodeBlocks(it.Text)
		n, err := strconv.Atoi(args)
		if err != nil || n < 1 || n > len(blocks) {
			return s.Hint(theme.Warn, "/copy N: the last answer has %s", humanize.Count(len(blocks), "code block"))
		}
		return s.Copy(blocks[n-1], fmt.Sprintf("code block %d", n))
	}
	return s.Hint(theme.Accent, "there is no answer to copy yet")
}

// AttachImage attaches the image in the clipboard, where there is a tool that reads it. Text is pasted
// by the terminal.
func (s Set) AttachImage(attach func(file string)) tea.Cmd {
	if s.ClipboardImage == nil {
		return nil
	}
	ctx := s.Context()
	return terminal.Do(func() func() tea.Cmd {
		file, err := s.ClipboardImage(ctx)
		return func() tea.Cmd {
			if err != nil {
				return s.ShowError(err)
			}
			attach(file)
			return nil
		}
	})
}
