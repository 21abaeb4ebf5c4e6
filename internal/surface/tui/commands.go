package tui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// A slash is a command that is typed after a slash.
type slash struct {
	composer.Command
	run func(m *model, args string) tea.Cmd
}

// slashes are the commands, in the order in which they are offered.
func slashes() []slash {
	cmd := func(name, args, help string, run func(*model, string) tea.Cmd) slash {
		return slash{composer.Command{Name: name, Args: args, Help: help}, run}
	}
	return []slash{
		cmd("resume", "", "resume another conversation", func(m *model, _ string) tea.Cmd { return m.apart(m.pickConversation) }),
		cmd("new", "", "start a new conversation", func(m *model, _ string) tea.Cmd { return m.apart(m.newConversation) }),
		cmd("fork", "", "continue in a copy of this conversation", func(m *model, _ string) tea.Cmd { return m.idle(m.fork) }),
		cmd("compact", "", "replace the history with a summary", func(m *model, _ string) tea.Cmd { return m.send(client.NewOp(p.Compact{})) }),
		cmd("try-now", "[MODEL]", "retry a turn that waits for a limit", (*model).tryNow),
		cmd("rewind", "", "edit an earlier message; revert what came after it", func(m *model, _ string) tea.Cmd { return m.idle(m.rewinder().Pick) }),
		cmd("revert", "N", "remove turn N and those after it from the history", (*model).revert),
		cmd("diff", "", "show changes to files", func(m *model, _ string) tea.Cmd { return commands.ShowDiff(m, m.o.Changes) }),
		cmd("undo-turn", "[N]", "restore the files that a turn changed", (*model).undo),
		cmd("model", "[NAME] [EFFORT]", "choose the model and how much it reasons", func(m *model, args string) tea.Cmd { return m.models().Model(args) }),
		cmd("effort", "[EFFORT]", "choose how much the model reasons", func(m *model, args string) tea.Cmd { return m.models().Effort(args) }),
		cmd("approvals", "", "choose approvals and sandbox", (*model).pickPreset),
		cmd("plan", "[TASK|off]", "plan mode: only read until you accept a plan", (*model).plan),
		cmd("permissions", "", "list and revoke what runs without asking", func(m *model, args string) tea.Cmd { return m.permissions().Show(args) }),
		cmd("ps", "", "list background commands", func(m *model, _ string) tea.Cmd { return commands.ShowBackground(m) }),
		cmd("kill", "N", "stop a background command", (*model).kill),
		cmd("mcp", "", "show the MCP servers, their tools and errors", (*model).showServers),
		cmd("answer", "NAME=VALUE…", "answer what an MCP server asks", (*model).answer),
		cmd("copy", "[N]", "copy the last answer, or its Nth code block", func(m *model, args string) tea.Cmd { return commands.CopyAnswer(m, args) }),
		cmd("export", "[FILE]", "write the conversation to a file: .md, .html or .json", (*model).export),
		cmd("init", "", "write an AGENTS.md for this repository", (*model).initialize),
		cmd("review", "[BRANCH|COMMIT]", "review what differs from the last commit, or a branch", (*model).review),
		cmd("archive", "", "put this conversation away and start a new one", func(m *model, _ string) tea.Cmd { return m.idle(m.archive) }),
		cmd("rename", "TITLE", "give the conversation a title", (*model).rename),
		cmd("status", "", "show settings and usage", (*model).showStatus),
		cmd("help", "", "list commands and keys", func(m *model, _ string) tea.Cmd { return m.help() }),
		cmd("quit", "", "quit; the conversation can be resumed", func(m *model, _ string) tea.Cmd { return m.quit() }),
		{composer.Command{Name: "exit", Help: "leave", Hidden: true}, func(m *model, _ string) tea.Cmd { return m.quit() }},
	}
}

// commandList is what can be typed after a slash: our own commands, then the
// user's prompt files.
func commandList(prompts []skills.Prompt) []composer.Command {
	var list []composer.Command
	for _, s := range slashes() {
		list = append(list, s.Command)
	}
	for _, f := range prompts {
		own := slices.ContainsFunc(list, func(c composer.Command) bool { return c.Name == f.Name })
		if !own {
			help := f.Description
			if help == "" {
				help = "send " + filepath.Base(f.File)
			}
			list = append(list, composer.Command{Name: f.Name, Args: f.Arguments, Help: safetext.Line(help)})
		}
	}
	return list
}

func (m *model) command(name, args string) tea.Cmd {
	for _, s := range slashes() {
		if s.Name == name {
			return s.run(m, strings.TrimSpace(args))
		}
	}
	for _, f := range m.o.Prompts {
		if f.Name == name {
			return m.submit(composer.Submit{Text: f.Expand(args)})
		}
	}
	return m.submit(composer.Submit{Text: strings.TrimSpace("/" + name + " " + args)}) // what it stands for is asked for when it is sent
}

// idle does something only when no turn runs.
func (m *model) idle(do func() tea.Cmd) tea.Cmd {
	if m.Busy() {
		return m.ShowError(engine.ErrBusy)
	}
	return do()
}

// newConversation begins a new conversation. It is created with its first message.
func (m *model) newConversation() tea.Cmd {
	left := m.leaveConversation("")
	m.begin("", engine.Snapshot{}, 0)
	return tea.Batch(left, m.preview(), m.branch())
}

// Configure changes the settings of the turns to come.
func (m *model) Configure(o p.Overrides, done string) tea.Cmd {
	if m.conv.id == "" {
		m.requested = merge(m.requested, o)
		return m.Hint(theme.OK, "%s", done)
	}
	op := client.NewOp(p.Configure{Overrides: o})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if err != nil {
			return m.ShowError(err)
		}
		return m.Hint(theme.OK, "%s", done)
	}
	return m.send(op)
}

// merge lays b over a, as far as this program sets them.
func merge(a, b p.Overrides) p.Overrides {
	if b.Provider != nil {
		a.Provider = b.Provider
	}
	if b.Model != nil {
		a.Model = b.Model
	}
	if b.Effort != nil {
		a.Effort = b.Effort
	}
	if b.Approval != nil {
		a.Approval = b.Approval
	}
	if b.Sandbox != nil {
		a.Sandbox = b.Sandbox
	}
	if b.Plan != nil {
		a.Plan = b.Plan
	}
	return a
}

// undo shows what putting a turn's files back would do, and asks.
func (m *model) undo(args string) tea.Cmd {
	turn := 0
	if args != "" {
		var err error
		if turn, err = strconv.Atoi(args); err != nil || turn < 1 {
			return m.Hint(theme.Warn, "/undo-turn N: N is the number of a turn")
		}
	}
	switch {
	case m.conv.id == "":
		return m.ShowError(errNoConversation)
	case turn > int(m.conv.tr.Turn):
		return m.noTurn(turn)
	case m.Busy():
		return m.ShowError(engine.ErrBusy)
	}
	return m.rewinder().UndoTurn(p.TurnID(turn))
}

func (m *model) showStatus(string) tea.Cmd {
	commands.Status{Version: m.o.Version, Branch: m.where, Usage: m.conv.base.Add(m.conv.tr.Usage), Context: m.conv.context}.Show(m)
	return nil
}

func (m *model) help() tea.Cmd {
	commands.ShowHelp(m, commandList(nil))
	return nil
}

// models sets the model and its effort.
func (m *model) models() commands.Models {
	c := commands.Models{Host: m, List: m.o.Models}
	if m.o.Config != nil {
		c.Home = m.o.Config.Home
	}
	return c
}

// permissions are what may run without asking.
func (m *model) permissions() commands.Permissions {
	return commands.Permissions{Host: m, Projects: m.o.Projects}
}

func (m *model) pickPreset(string) tea.Cmd {
	commands.PickPreset(m, m.o.Config)
	return nil
}

func (m *model) onEdited(e commands.Edited) tea.Cmd {
	if e.Err != nil {
		return m.ShowError(fmt.Errorf("the editor: %w", e.Err))
	}
	m.comp.SetText(strings.TrimRight(e.Text, "\n"))
	return nil
}

// rename gives the conversation a title.
func (m *model) rename(title string) tea.Cmd {
	if title == "" {
		return m.Hint(theme.Warn, "/rename TITLE: what should it be called?")
	}
	return m.send(client.NewOp(p.Rename{Title: title}))
}

// noTurn says that a number is too high. Messages carry theirs at the right.
func (m *model) noTurn(n int) tea.Cmd {
	return m.Hint(theme.Warn, "there is no turn %d; the last one is %d", n, m.conv.tr.Turn)
}

// tryNow ends a hold, with another model if one is named.
func (m *model) tryNow(name string) tea.Cmd {
	try := p.TryNow{}
	if name != "" {
		try.Overrides = &p.Overrides{Model: &name}
	}
	return m.send(client.NewOp(try))
}

// revert removes a turn and those after it from the history.
func (m *model) revert(arg string) tea.Cmd {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return m.Hint(theme.Warn, "/revert N: N is the number of a turn")
	}
	if m.conv.id != "" && n > int(m.conv.tr.Turn) {
		return m.noTurn(n)
	}
	return m.send(client.NewOp(p.Revert{Before: p.TurnID(n)}))
}
