package commands

import (
	"errors"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/message"
	"github.com/fermata-agent/fermata/internal/app/review"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// Init asks the model for an AGENTS.md.
func (s Set) Init(string) tea.Cmd { return s.Submit(message.InitTask, nil) }

// Review asks the model to look at changes: of the working tree, or since a branch or
// commit.
func (s Set) Review(name string) tea.Cmd {
	return s.Submit(review.Target{Name: strings.TrimSpace(name)}.Prompt(), nil)
}

// Compact replaces the history with a summary.
func (s Set) Compact(string) tea.Cmd { return s.Send(client.NewOp(p.Compact{})) }

// Rename gives the conversation a title.
func (s Set) Rename(title string) tea.Cmd {
	if title == "" {
		return s.Hint(theme.Warn, "/rename TITLE: what should it be called?")
	}
	return s.Send(client.NewOp(p.Rename{Title: title}))
}

// TryNow ends a hold, with another model if one is named.
func (s Set) TryNow(name string) tea.Cmd {
	try := p.TryNow{}
	if name != "" {
		try.Overrides = &p.Overrides{Model: &name}
	}
	return s.Send(client.NewOp(try))
}

// Revert removes a turn and those after it from the history.
func (s Set) Revert(arg string) tea.Cmd {
	n, cmd := s.turn("/revert N", arg)
	if cmd != nil {
		return cmd
	}
	return s.Send(client.NewOp(p.Revert{Before: n}))
}

// turn reads the number of a turn. Messages carry theirs at the right.
func (s Set) turn(usage, arg string) (p.TurnID, tea.Cmd) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return 0, s.Hint(theme.Warn, "%s: N is the number of a turn", usage)
	}
	if id, tr := s.Conversation(); id != "" && n > int(tr.Turn) {
		return 0, s.Hint(theme.Warn, "there is no turn %d; the last one is %d", n, tr.Turn)
	}
	return p.TurnID(n), nil
}

// Kill stops a background command.
func (s Set) Kill(arg string) tea.Cmd {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return s.Hint(theme.Warn, "/kill N: N is the number that /ps shows")
	}
	return s.Send(client.NewOp(p.KillBackground{ID: p.BackgroundID(n)}).ThenHint(s, "background command %d is being stopped", n))
}

// Export writes the conversation to a file.
func (s Set) Export(file string) tea.Cmd {
	if cmd := s.needConversation(); cmd != nil {
		return cmd
	}
	if s.Environment.Export == nil {
		return s.ShowError(errors.New("conversations cannot be exported here"))
	}
	ctx, dir := s.Context(), s.Settings().Cwd
	id, _ := s.Conversation()
	return terminal.Do(func() func() tea.Cmd {
		path, err := s.Environment.Export(ctx, id, dir, file)
		return func() tea.Cmd {
			if err != nil {
				return s.ShowError(err)
			}
			return s.Hint(theme.OK, "written to %s", path)
		}
	})
}

// Archive puts the conversation away. begin begins a new one, and note shows a remark in it.
func (s Set) Archive(begin func() tea.Cmd, note func(warn bool, format string, args ...any)) tea.Cmd {
	if cmd := s.needConversation(); cmd != nil {
		return cmd
	}
	ctx, e := s.Context(), s.Engine()
	id, _ := s.Conversation()
	return tea.Batch(begin(), terminal.Do(func() func() tea.Cmd {
		err := e.Archive(ctx, id)
		return func() tea.Cmd {
			if err != nil {
				return s.ShowError(err)
			}
			note(false, "archived; fermata unarchive %s brings it back", id)
			return nil
		}
	}))
}

// ShowServers shows the state of the MCP servers.
func (s Set) ShowServers(string) tea.Cmd {
	text := ""
	if s.MCP != nil {
		text = s.MCP()
	}
	if text == "" {
		return s.Hint(theme.Accent, "no MCP server is used; see fermata mcp add --help")
	}
	s.ShowPage(draw.NewTextPage(s.Theme(), "MCP servers", safetext.Show(text)))
	return nil
}

// IfIdle does something only when no turn runs.
func (s Set) IfIdle(do func() tea.Cmd) tea.Cmd {
	if s.Busy() {
		return s.ShowError(engine.ErrBusy)
	}
	return do()
}
