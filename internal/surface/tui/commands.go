package tui

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config/skills"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/loop"
	"github.com/fermata-agent/fermata/internal/surface/tui/markdown"
	"github.com/fermata-agent/fermata/internal/surface/tui/page"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/words"
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
		cmd("compact", "", "replace the history with a summary", func(m *model, _ string) tea.Cmd { return m.send(say(p.Compact{})) }),
		cmd("try-now", "[MODEL]", "retry a turn that waits for a limit", (*model).tryNow),
		cmd("rewind", "", "edit an earlier message; revert what came after it", func(m *model, _ string) tea.Cmd { return m.idle(m.rewind) }),
		cmd("revert", "N", "remove turn N and those after it from the history", (*model).revert),
		cmd("diff", "", "show changes to files", (*model).diff),
		cmd("undo-turn", "[N]", "restore the files that a turn changed", (*model).undo),
		cmd("model", "[NAME] [EFFORT]", "choose the model and how much it reasons", (*model).chooseModel),
		cmd("effort", "[EFFORT]", "choose how much the model reasons", (*model).effort),
		cmd("approvals", "", "choose approvals and sandbox", func(m *model, _ string) tea.Cmd { return m.pickPreset() }),
		cmd("plan", "[TASK|off]", "plan mode: only read until you accept a plan", (*model).plan),
		cmd("permissions", "", "list and revoke what runs without asking", (*model).permissions),
		cmd("ps", "", "list background commands", (*model).ps),
		cmd("kill", "N", "stop a background command", (*model).kill),
		cmd("mcp", "", "show the MCP servers, their tools and errors", (*model).showServers),
		cmd("answer", "NAME=VALUE…", "answer what an MCP server asks", (*model).answer),
		cmd("copy", "[N]", "copy the last answer, or its Nth code block", (*model).copyAnswer),
		cmd("export", "[FILE]", "write the conversation to a file: .md, .html or .json", (*model).export),
		cmd("init", "", "write an AGENTS.md for this repository", (*model).initialize),
		cmd("review", "[BRANCH|COMMIT]", "review what differs from the last commit, or a branch", (*model).review),
		cmd("archive", "", "put this conversation away and start a new one", func(m *model, _ string) tea.Cmd { return m.idle(m.archive) }),
		cmd("rename", "TITLE", "give the conversation a title", (*model).rename),
		cmd("status", "", "show settings and usage", (*model).showStatus),
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
	if m.busy() {
		return m.showError(engine.ErrBusy)
	}
	return do()
}

// newConversation begins a new conversation. It is created with its first message.
func (m *model) newConversation() tea.Cmd {
	left := m.leaveConversation("")
	m.begin("", engine.Snapshot{}, 0)
	return tea.Batch(left, m.preview(), m.branch())
}

// configure changes the settings of the turns to come.
func (m *model) configure(o p.Overrides, done string) tea.Cmd {
	if m.conv.id == "" {
		m.requested = merge(m.requested, o)
		return m.hintf(theme.OK, "%s", done)
	}
	e := say(p.Configure{Overrides: o})
	e.then = func(_ p.Receipt, err error) tea.Cmd {
		if err != nil {
			return m.showError(err)
		}
		return m.hintf(theme.OK, "%s", done)
	}
	return m.send(e)
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

// diff shows what the last turn changed, else what differs in the working tree.
func (m *model) diff(string) tea.Cmd {
	if d := m.conv.tr.Diff; d != "" {
		m.showDiff("What the last turn changed", d)
		return nil
	}
	if m.o.Changes == nil {
		return m.hintf(theme.Accent, "the last turn changed no files")
	}
	ctx, f, dir := m.ctx, m.o.Changes, m.settings().Cwd
	return func() tea.Msg {
		d, err := f(ctx, dir)
		return answer{func() tea.Cmd {
			switch {
			case err != nil:
				return m.showError(err)
			case strings.TrimSpace(d) == "":
				return m.hintf(theme.Accent, "the last turn changed no files, and nothing differs from the last commit")
			}
			m.showDiff("What differs from the last commit", d)
			return nil
		}}
	}
}

func (m *model) showDiff(title, d string) {
	m.screen = paper{page.New(m.theme, title, func(width int) []string {
		fence := "```"
		for strings.Contains(d, fence) {
			fence += "`"
		}
		return markdown.Render(fence+"diff\n"+strings.TrimRight(d, "\n")+"\n"+fence, width, m.theme)
	})}
}

// undo shows what putting a turn's files back would do, and asks.
func (m *model) undo(args string) tea.Cmd {
	turn := 0
	if args != "" {
		var err error
		if turn, err = strconv.Atoi(args); err != nil || turn < 1 {
			return m.hintf(theme.Warn, "/undo-turn N: N is the number of a turn")
		}
	}
	switch {
	case m.conv.id == "":
		return m.showError(errNoConversation)
	case turn > int(m.conv.tr.Turn):
		return m.noTurn(turn)
	case m.busy():
		return m.showError(engine.ErrBusy)
	case m.o.Undo == nil:
		return m.showError(errors.New("undo is not available here"))
	}
	ctx, f, id := m.ctx, m.o.Undo, m.conv.id
	return func() tea.Msg {
		u, err := f(ctx, id, p.TurnID(turn))
		return answer{func() tea.Cmd {
			if err != nil {
				return m.showError(err)
			}
			return m.confirmUndo(id, u)
		}}
	}
}

func (m *model) confirmUndo(id p.ConversationID, u *app.Undo) tea.Cmd {
	if m.conv.id != id || m.busy() {
		return m.hintf(theme.Warn, "nothing was undone: the conversation has continued")
	}
	if u.Files == 0 {
		return m.hintf(theme.Accent, "nothing to do: the files are as they were before turn %d", u.Turn)
	}
	ctx := m.ctx
	m.screen = nil
	m.dialog = &asking{
		Model: dialog.NewConfirm(m.theme, dialog.Confirm{
			Title: fmt.Sprintf("Restore %s to the state before turn %d?", words.Count(u.Files, "file"), u.Turn),
			Body:  u.Notes, Diff: u.Diff, Default: 1,
			Choices: []dialog.Choice{{ID: "yes", Key: "y", Label: "restore them"}, {ID: "no", Key: "n", Label: "leave them"}},
		}),
		done: func(a dialog.Action) tea.Cmd {
			if a.Choice != "yes" {
				return m.hintf(theme.Accent, "nothing was undone")
			}
			return func() tea.Msg {
				err := u.Do(ctx)
				return answer{func() tea.Cmd {
					if err != nil {
						return m.showError(err)
					}
					return m.hintf(theme.OK, "turn %d was undone", u.Turn)
				}}
			}
		},
	}
	return nil
}

func (m *model) showStatus(string) tea.Cmd {
	s, t := m.settings(), &m.conv
	u := t.base.Add(t.tr.Usage)
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, safetext.ShowLine(fmt.Sprintf(format, args...)))
	}
	line("fermata", "%s", m.o.Version)
	if t.id != "" {
		line("conversation", "%s", t.id)
		if t.tr.Title != "" {
			line("title", "%s", t.tr.Title)
		}
		line("turns", "%d", t.tr.Turn)
		line("to resume", "fermata resume %s", t.id)
	}
	line("model", "%s (%s)", s.Model, s.Provider)
	if s.Effort != "" {
		line("effort", "%s", s.Effort)
	}
	line("directory", "%s", s.Cwd)
	if m.where != "" {
		line("branch", "%s", m.where)
	}
	line("sandbox", "%s", s.Sandbox.Mode)
	line("approvals", "%s", s.Approval)
	line("tokens", "%d in (%d of them cached), %d out", u.Input, u.Cached, u.Output)
	if t.context > 0 {
		line("context", "%d tokens%s", t.context, window(s.ContextWindow))
	}
	line("background", "%d", len(m.conv.tr.Running))
	m.page("Status", b.String())
	return nil
}

func window(n int64) string {
	if n == 0 {
		return "" // it is not known
	}
	return fmt.Sprintf(" of %d", n)
}

func (m *model) help(string) tea.Cmd {
	var b strings.Builder
	for _, s := range slashes() {
		if !s.Hidden {
			fmt.Fprintf(&b, "%-23s %s\n", strings.TrimSpace("/"+s.Name+" "+s.Args), s.Help)
		}
	}
	m.page("Commands and keys", b.String()+words.Keys)
	return nil
}

// editor lets the person write in their own editor.
func (m *model) editor() tea.Cmd {
	if m.o.Editor == nil {
		return m.hintf(theme.Warn, "no editor: set VISUAL or EDITOR")
	}
	ctx, f, text := m.asked, m.o.Editor, m.comp.Text() // while it runs nothing else would end it
	return func() tea.Msg {
		cmd, read, err := f(ctx, text)
		if err != nil {
			return edited{err: err}
		}
		return answer{func() tea.Cmd {
			run := func(in io.Reader, out io.Writer) error {
				cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
				return cmd.Run()
			}
			return loop.Exec(run, func(err error) tea.Msg {
				text, readErr := read() // also when it failed, so that the file goes
				return edited{text, errors.Join(err, readErr)}
			})
		}}
	}
}

// edited is what the editor left.
type edited struct {
	text string
	err  error
}

func (m *model) onEdited(e edited) tea.Cmd {
	if e.err != nil {
		return m.showError(fmt.Errorf("the editor: %w", e.err))
	}
	m.comp.SetText(strings.TrimRight(e.text, "\n"))
	return nil
}

// rename gives the conversation a title.
func (m *model) rename(title string) tea.Cmd {
	if title == "" {
		return m.hintf(theme.Warn, "/rename TITLE: what should it be called?")
	}
	return m.send(say(p.Rename{Title: title}))
}

// noTurn says that a number is too high. Messages carry theirs at the right.
func (m *model) noTurn(n int) tea.Cmd {
	return m.hintf(theme.Warn, "there is no turn %d; the last one is %d", n, m.conv.tr.Turn)
}

// tryNow ends a hold, with another model if one is named.
func (m *model) tryNow(name string) tea.Cmd {
	try := p.TryNow{}
	if name != "" {
		try.Overrides = &p.Overrides{Model: &name}
	}
	return m.send(say(try))
}

// revert removes a turn and those after it from the history.
func (m *model) revert(arg string) tea.Cmd {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return m.hintf(theme.Warn, "/revert N: N is the number of a turn")
	}
	if m.conv.id != "" && n > int(m.conv.tr.Turn) {
		return m.noTurn(n)
	}
	return m.send(say(p.Revert{Before: p.TurnID(n)}))
}
