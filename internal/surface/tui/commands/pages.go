package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// ShowDiff shows what the last turn changed, else what differs in the working tree. changes finds that out;
// it may be nil.
func ShowDiff(h Host, changes func(ctx context.Context, dir string) (diff string, err error)) tea.Cmd {
	if _, tr := h.Conversation(); tr.Diff != "" {
		showDiffPage(h, "What the last turn changed", tr.Diff)
		return nil
	}
	if changes == nil {
		return h.Hint(theme.Accent, "the last turn changed no files")
	}
	ctx, dir := h.Context(), h.Settings().Cwd
	return terminal.Do(func() func() tea.Cmd {
		d, err := changes(ctx, dir)
		return func() tea.Cmd {
			switch {
			case err != nil:
				return h.ShowError(err)
			case strings.TrimSpace(d) == "":
				return h.Hint(theme.Accent, "the last turn changed no files, and nothing differs from the last commit")
			}
			showDiffPage(h, "What differs from the last commit", d)
			return nil
		}
	})
}

func showDiffPage(h Host, title, d string) {
	t := h.Theme()
	h.ShowPage(draw.NewPage(t, title, func(width int) []string {
		fence := "```"
		for strings.Contains(d, fence) {
			fence += "`"
		}
		return draw.Markdown(fence+"diff\n"+strings.TrimRight(d, "\n")+"\n"+fence, width, t)
	}))
}

// A Status is what /status shows besides the conversation and its settings.
type Status struct {
	Version, Branch string
	Usage           p.Usage
	Context         int64 // tokens that the last request and its response took
}

// Show shows the state of the conversation.
func (s Status) Show(h Host) {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, safetext.ShowLine(fmt.Sprintf(format, args...)))
	}
	line("fermata", "%s", s.Version)
	id, tr := h.Conversation()
	if id != "" {
		line("conversation", "%s", id)
		if tr.Title != "" {
			line("title", "%s", tr.Title)
		}
		line("turns", "%d", tr.Turn)
		line("to resume", "fermata resume %s", id)
	}
	now := h.Settings()
	line("model", "%s (%s)", now.Model, now.Provider)
	if now.Effort != "" {
		line("effort", "%s", now.Effort)
	}
	line("directory", "%s", now.Cwd)
	if s.Branch != "" {
		line("branch", "%s", s.Branch)
	}
	line("sandbox", "%s", now.Sandbox.Mode)
	line("approvals", "%s", now.Approval)
	line("tokens", "%d in (%d of them cached), %d out", s.Usage.Input, s.Usage.Cached, s.Usage.Output)
	if s.Context > 0 {
		line("context", "%d tokens%s", s.Context, window(now.ContextWindow))
	}
	line("background", "%d", len(tr.Running))
	h.ShowPage(draw.NewTextPage(h.Theme(), "Status", b.String()))
}

func window(n int64) string {
	if n == 0 {
		return "" // it is not known
	}
	return fmt.Sprintf(" of %d", n)
}

// ShowHelp shows commands and keys.
func ShowHelp(h Host, commands []composer.Command) {
	var b strings.Builder
	for _, c := range commands {
		if !c.Hidden {
			fmt.Fprintf(&b, "%-23s %s\n", strings.TrimSpace("/"+c.Name+" "+c.Args), c.Help)
		}
	}
	h.ShowPage(draw.NewTextPage(h.Theme(), "Commands and keys", b.String()+screen.Keys))
}

// ShowBackground lists the commands that run beside the turns.
func ShowBackground(h Host) tea.Cmd {
	_, tr := h.Conversation()
	if len(tr.Running) == 0 {
		return h.Hint(theme.Accent, "no background commands are running")
	}
	var b strings.Builder
	for _, job := range tr.Running {
		fmt.Fprintln(&b, Job(job))
	}
	h.ShowPage(draw.NewTextPage(h.Theme(), "Background commands; /kill N stops one", b.String()))
	return nil
}

// Job is a background command in one line.
func Job(b p.BackgroundStarted) string {
	it := transcript.Item{Command: b.Command}
	return fmt.Sprintf("%d  %s", b.ID, safetext.Line(it.CommandLine()))
}

// lookTime is how long somebody who quits waits for what conversations say that
// are not on the screen.
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
