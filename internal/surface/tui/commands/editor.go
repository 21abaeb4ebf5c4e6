package commands

import (
	"context"
	"errors"
	"io"
	"os/exec"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A PrepareEditor makes the command that edits a text, and the function that returns what became of it.
type PrepareEditor func(ctx context.Context, text string) (*exec.Cmd, func() (string, error), error)

// Edited is the message with what the editor left.
type Edited struct {
	Text string // empty if there is an error
	Err  error  // of the editor, or of reading its file
}

// RunEditor edits a text in the user's editor; an Edited follows. The editor has the terminal meanwhile, and is killed
// when ctx ends.
func (s Set) RunEditor(ctx context.Context, text string) tea.Cmd {
	if s.Editor == nil {
		return s.Hint(theme.Warn, "no editor: set VISUAL or EDITOR")
	}
	return func() tea.Msg {
		cmd, read, err := s.Editor(ctx, text)
		if err != nil {
			return Edited{Err: err}
		}
		return terminal.Exec(func(in io.Reader, out io.Writer) error {
			cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
			return cmd.Run()
		}, func(err error) tea.Msg {
			text, readErr := read() // also when it failed, so that the file goes
			return Edited{text, errors.Join(err, readErr)}
		})()
	}
}
