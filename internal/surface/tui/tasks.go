package tui

import (
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app/message"
	"github.com/fermata-agent/fermata/internal/app/review"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// initialize asks the model for an AGENTS.md.
func (m *model) initialize(string) tea.Cmd { return m.submit(composer.Submit{Text: message.InitTask}) }

// review asks the model to look at changes: of the working tree, or since a branch or
// commit.
func (m *model) review(args string) tea.Cmd {
	return m.submit(composer.Submit{Text: review.Target{Name: strings.TrimSpace(args)}.Prompt()})
}

// export writes the conversation to a file.
func (m *model) export(file string) tea.Cmd {
	switch {
	case m.conv.id == "":
		return m.ShowError(errNoConversation)
	case m.o.Export == nil:
		return m.ShowError(errors.New("conversations cannot be exported here"))
	}
	ctx, f, id, dir := m.ctx, m.o.Export, m.conv.id, m.Settings().Cwd
	return func() tea.Msg {
		path, err := f(ctx, id, dir, file)
		return terminal.Done{Then: func() tea.Cmd {
			if err != nil {
				return m.ShowError(err)
			}
			return m.Hint(theme.OK, "written to %s", path)
		}}
	}
}

// archive puts the conversation away, and begins a new one.
func (m *model) archive() tea.Cmd {
	id := m.conv.id
	if id == "" {
		return m.ShowError(errNoConversation)
	}
	ctx, e := m.ctx, m.o.Engine
	begin := m.newConversation()
	return tea.Batch(begin, func() tea.Msg {
		err := e.Archive(ctx, id)
		return terminal.Done{Then: func() tea.Cmd {
			if err != nil {
				return m.ShowError(err)
			}
			m.note(false, "archived; fermata unarchive %s brings it back", id)
			return nil
		}}
	})
}
