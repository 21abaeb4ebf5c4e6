package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// Copy gives a text to the terminal's clipboard. what names it for the person.
func Copy(h Host, text, what string) tea.Cmd {
	if text == "" {
		return nil
	}
	return tea.Batch(tea.Raw(ansi.SetSystemClipboard(text)), h.Hint(theme.OK, "copied the %s (%s)", what, screen.Count(len([]rune(text)), "character")))
}

// CopyAnswer copies the last answer, or one of its code blocks.
func CopyAnswer(h Host, args string) tea.Cmd {
	_, tr := h.Conversation()
	for _, it := range slices.Backward(tr.Items) {
		if it.Kind != transcript.Message || strings.TrimSpace(it.Text) == "" {
			continue
		}
		if args == "" {
			return Copy(h, it.Text, "last answer")
		}
		blocks := draw.CodeBlocks(it.Text)
		n, err := strconv.Atoi(args)
		if err != nil || n < 1 || n > len(blocks) {
			return h.Hint(theme.Warn, "/copy N: the last answer has %s", screen.Count(len(blocks), "code block"))
		}
		return Copy(h, blocks[n-1], fmt.Sprintf("code block %d", n))
	}
	return h.Hint(theme.Accent, "there is no answer to copy yet")
}

// AttachImage attaches the image in the clipboard, where there is a tool that reads it. Text is pasted
// by the terminal. write makes a file of the image; it may be nil.
func AttachImage(h Host, write func(context.Context) (file string, err error), attach func(file string)) tea.Cmd {
	if write == nil {
		return nil
	}
	ctx := h.Context()
	return terminal.Do(func() func() tea.Cmd {
		file, err := write(ctx)
		return func() tea.Cmd {
			if err != nil {
				return h.ShowError(err)
			}
			attach(file)
			return nil
		}
	})
}
