package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
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
	do := func(run func(commands.Set, string) tea.Cmd) func(*model, string) tea.Cmd {
		return func(m *model, args string) tea.Cmd { return run(m.do, args) }
	}
	return []slash{
		cmd("resume", "", "resume another conversation", func(m *model, _ string) tea.Cmd { return m.WhenIdle(m.pickConversation) }),
		cmd("new", "", "start a new conversation", func(m *model, _ string) tea.Cmd { return m.WhenIdle(m.newConversation) }),
		cmd("fork", "", "continue in a copy of this conversation", func(m *model, _ string) tea.Cmd { return m.do.IfIdle(m.Fork) }),
		cmd("compact", "", "replace the history with a summary", do(commands.Set.Compact)),
		cmd("try-now", "[MODEL]", "retry a turn that waits for a limit", do(commands.Set.TryNow)),
		cmd("rewind", "", "edit an earlier message; revert what came after it", func(m *model, _ string) tea.Cmd { return m.do.IfIdle(m.do.Rewind) }),
		cmd("revert", "N", "remove turn N and those after it from the history", do(commands.Set.Revert)),
		cmd("diff", "", "show changes to files", do(commands.Set.ShowDiff)),
		cmd("undo-turn", "[N]", "restore the files that a turn changed", do(commands.Set.UndoTurn)),
		cmd("model", "[NAME] [EFFORT]", "choose the model and how much it reasons", do(commands.Set.Model)),
		cmd("effort", "[EFFORT]", "choose how much the model reasons", do(commands.Set.Effort)),
		cmd("approvals", "", "choose approvals and sandbox", do(commands.Set.PickPreset)),
		cmd("plan", "[TASK|off]", "plan mode: only read until you accept a plan", func(m *model, args string) tea.Cmd { return m.ask.SwitchPlan(args) }),
		cmd("permissions", "", "list and revoke what runs without asking", do(commands.Set.ShowPermissions)),
		cmd("ps", "", "list background commands", do(commands.Set.ShowBackground)),
		cmd("kill", "N", "stop a background command", do(commands.Set.Kill)),
		cmd("mcp", "", "show the MCP servers, their tools and errors", do(commands.Set.ShowServers)),
		cmd("answer", "NAME=VALUE…", "answer what an MCP server asks", func(m *model, args string) tea.Cmd { return m.ask.AnswerMCP(args) }),
		cmd("copy", "[N]", "copy the last answer, or its Nth code block", do(commands.Set.CopyAnswer)),
		cmd("export", "[FILE]", "write the conversation to a file: .md, .html or .json", do(commands.Set.Export)),
		cmd("init", "", "write an AGENTS.md for this repository", do(commands.Set.Init)),
		cmd("review", "[BRANCH|COMMIT]", "review what differs from the last commit, or a branch", do(commands.Set.Review)),
		cmd("archive", "", "put this conversation away and start a new one", func(m *model, _ string) tea.Cmd {
			return m.do.IfIdle(func() tea.Cmd { return m.do.Archive(m.newConversation, m.note) })
		}),
		cmd("rename", "TITLE", "give the conversation a title", do(commands.Set.Rename)),
		cmd("status", "", "show settings and usage", func(m *model, _ string) tea.Cmd { return m.do.ShowStatus(m.conv, m.branch) }),
		cmd("help", "", "list commands and keys", (*model).help),
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
	return commands.WithPrompts(list, prompts)
}

func (m *model) command(name, args string) tea.Cmd {
	for _, s := range slashes() {
		if s.Name == name {
			return s.run(m, strings.TrimSpace(args))
		}
	}
	for _, f := range m.o.Prompts {
		if f.Name == name {
			return m.Submit(f.Expand(args), nil)
		}
	}
	return m.Submit(strings.TrimSpace("/"+name+" "+args), nil) // what it stands for is asked for when it is sent
}

func (m *model) help(string) tea.Cmd {
	m.do.ShowHelp(commandList(nil))
	return nil
}

func (m *model) onEdited(e commands.Edited) tea.Cmd {
	if e.Err != nil {
		return m.ShowError(fmt.Errorf("the editor: %w", e.Err))
	}
	m.comp.SetText(strings.TrimRight(e.Text, "\n"))
	return nil
}
