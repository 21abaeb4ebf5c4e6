package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// ShowDiff shows what the last turn changed, else what differs in the working tree.
func (s Set) ShowDiff(string) tea.Cmd {
	if _, tr := s.Conversation(); tr.Diff != "" {
		s.showDiffPage("What the last turn changed", tr.Diff)
		return nil
	}
	if s.Changes == nil {
		return s.Hint(theme.Accent, "the last turn changed no files")
	}
	ctx, dir := s.Context(), s.Settings().Cwd
	return terminal.Do(func() func() tea.Cmd {
		d, err := s.Changes(ctx, dir)
		return func() tea.Cmd {
			switch {
			case err != nil:
				return s.ShowError(err)
			case strings.TrimSpace(d) == "":
				return s.Hint(theme.Accent, "the last turn changed no files, and nothing differs from the last commit")
			}
			s.showDiffPage("What differs from the last commit", d)
			return nil
		}
	})
}

func (s Set) showDiffPage(title, d string) {
	t := s.Theme()
	s.ShowPage(draw.NewPage(t, title, func(width int) []string {
		fence := "```"
		for strings.Contains(d, fence) {
			fence += "`"
		}
		return draw.Markdown(fence+"diff\n"+strings.TrimRight(d, "\n")+"\n"+fence, width, t)
	}))
}

// ShowStatus shows the state of the conversation, and the branch that it works on.
func (s Set) ShowStatus(t *client.Conversation, branch string) tea.Cmd {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, safetext.ShowLine(fmt.Sprintf(format, args...)))
	}
	line("fermata", "%s", s.Version)
	id, tr, usage := t.ID, t.Transcript, t.Usage()
	if id != "" {
		line("conversation", "%s", id)
		if tr.Title != "" {
			line("title", "%s", tr.Title)
		}
		line("turns", "%d", tr.Turn)
		line("to resume", "fermata resume %s", id)
	}
	now := s.Settings()
	line("model", "%s (%s)", now.Model, now.Provider)
	if now.Effort != "" {
		line("effort", "%s", now.Effort)
	}
	line("directory", "%s", now.Cwd)
	if branch != "" {
		line("branch", "%s", branch)
	}
	line("sandbox", "%s", now.Sandbox.Mode)
	line("approvals", "%s", now.Approval)
	line("tokens", "%d in (%d of them cached), %d out", usage.Input, usage.Cached, usage.Output)
	if t.Context > 0 {
		line("context", "%d tokens%s", t.Context, window(now.ContextWindow))
	}
	line("background", "%d", len(tr.Running))
	s.ShowPage(draw.NewTextPage(s.Theme(), "Status", b.String()))
	return nil
}

func window(n int64) string {
	if n == 0 {
		return "" // it is not known
	}
	return fmt.Sprintf(" of %d", n)
}

// ShowHelp shows commands and keys.
func (s Set) ShowHelp(commands []composer.Command) {
	var b strings.Builder
	for _, c := range commands {
		if !c.Hidden {
			fmt.Fprintf(&b, "%-23s %s\n", strings.TrimSpace("/"+c.Name+" "+c.Args), c.Help)
		}
	}
	s.ShowPage(draw.NewTextPage(s.Theme(), "Commands and keys", b.String()+screen.Keys))
}

// ShowBackground lists the commands that run beside the turns.
func (s Set) ShowBackground(string) tea.Cmd {
	_, tr := s.Conversation()
	if len(tr.Running) == 0 {
		return s.Hint(theme.Accent, "no background commands are running")
	}
	var b strings.Builder
	for _, job := range tr.Running {
		fmt.Fprintln(&b, Job(job))
	}
	s.ShowPage(draw.NewTextPage(s.Theme(), "Background commands; /kill N stops one", b.String()))
	return nil
}

// Job is a background command in one line.
func Job(b p.BackgroundStarted) string {
	it := transcript.Item{Command: b.Command}
	return fmt.Sprintf("%d  %s", b.ID, safetext.Line(it.CommandLine()))
}

// lookTime is how long quitting waits for what runs in conversations that are not
// on the screen.
const lookTime = time.Second

// JobsOf are the commands that still run in conversations that are not on the screen, one line each.
func JobsOf(ctx context.Context, e engine.Engine, ids []p.ConversationID) []string {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var lines []string
	for _, id := range ids {
		snap, err := e.Resume(ctx, id)
		if err != nil {
			continue // then nothing runs in it, or it cannot be known
		}
		for _, job := range snap.Background {
			line := Job(job)
			if title := safetext.Line(strings.TrimSpace(snap.Title)); title != "" {
				line += "  (in: " + title + ")"
			}
			lines = append(lines, line)
		}
	}
	return lines
}
