package runcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// isInteractive reports whether the terminal is interactive, so that approvals can be asked for.
func (f execFlags) isInteractive(s cli.Streams) bool {
	return !f.json && !f.park && cli.Terminal(s.In) && cli.Terminal(s.RawErr)
}

// newPrompt is how that person is asked.
func newPrompt(s cli.Streams, r *app.App) *exec.Prompt {
	return &exec.Prompt{In: s.In, Offer: func(ask *p.ApprovalRequested) (string, func() error, bool) {
		if ask.MCP != nil {
			what := fmt.Sprintf("don't ask again for %s of the MCP server %s", safetext.ShowLine(ask.MCP.Name), safetext.ShowLine(ask.MCP.Server))
			return what, func() error { return r.Projects.Allow(r.Projects.OfferTool(*ask.MCP, ask.Cwd)) }, true
		}
		if ask.Kind != p.ApproveCommand {
			return "", nil, false
		}
		perm, ok := project.Offer(ask.Command, ask.Cwd)
		what := fmt.Sprintf("don't ask again for commands that start with `%s` in %s", perm, app.Tilde(perm.Dir))
		return what, func() error { return r.Projects.Allow(perm) }, ok
	}}
}

// refusedCalls are what was refused in a turn while no client could be asked, or would have been.
type refusedCalls struct {
	list    []string // in words, one line each
	reasons map[p.RefusalReason]bool
}

func (l *refusedCalls) add(r exec.Refusal) {
	if l.reasons == nil {
		l.reasons = map[p.RefusalReason]bool{}
	}
	l.reasons[r.Reason] = true
	if line := strings.TrimPrefix(r.What+": "+r.Why, ": "); len(l.list) == 0 || l.list[len(l.list)-1] != line {
		l.list = append(l.list, line)
	}
}

// only reports whether every refusal is for this reason.
func (l *refusedCalls) only(reason p.RefusalReason) bool {
	return len(l.reasons) == 1 && l.reasons[reason]
}

// shownRefusals is how many are listed.
const shownRefusals = 5

// explain says what was refused, and how to allow it.
func (l *refusedCalls) explain(s cli.Streams, how string) {
	if l.only(p.RefusedQuestion) {
		how = "in a terminal you are asked"
	}
	head := "fermata: refused, since there is no interactive client:"
	if l.only(p.RefusedByPlanMode) || l.only(p.RefusedByRule) {
		head = "fermata: refused:"
	}
	fmt.Fprintln(s.Err, head)
	for i, line := range l.list {
		if i == shownRefusals {
			fmt.Fprintf(s.Err, "  … and %d more\n", len(l.list)-i)
			break
		}
		fmt.Fprintf(s.Err, "  %s\n", strings.Join(safetext.FoldTo(shownRefusals, line, foldWidth), "\n    "))
	}
	fmt.Fprintf(s.Err, "hint: %s\n", how)
}

// howToAllow says how to let a conversation do what was refused.
func (f execFlags) howToAllow(ctx context.Context, r *app.App, id p.ConversationID, refused *refusedCalls) string {
	if f.review {
		if f.ephemeral {
			return "a review only reads"
		}
		return fmt.Sprintf("a review only reads; to let it change files: fermata exec resume %s -s workspace-write PROMPT", id)
	}
	how := "--park waits for fermata approve"
	switch {
	case refused.only(p.RefusedTool):
		return "fermata permissions allow --tool lets a tool be called always; " + how
	case refused.only(p.RefusedByRule):
		return "fermata permissions lists the rules"
	}
	snap, err := r.Engine.Resume(ctx, id)
	if err == nil && snap.Settings.Plan {
		return fmt.Sprintf("the conversation is in plan mode; to accept the plan: fermata exec resume %s --accept-plan PROMPT", id)
	}
	if err == nil && snap.Settings.Sandbox.Mode == p.SandboxReadOnly {
		return "-s workspace-write lets it write here this time, fermata trust always; " + how
	}
	if refused.only(p.RefusedPath) {
		return "--add-dir DIR lets it write to DIR as well; " + how
	}
	return "fermata permissions allow COMMAND lets a command run always; " + how
}
