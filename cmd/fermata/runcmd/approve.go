package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// approveFlags are the flags of approve.
type approveFlags struct {
	cli.RunFlags
	deny    bool
	stop    bool
	session bool
	message string
	json    bool

	answerTo string // file
}

func approveCommand(s cli.Streams) *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use:   "approve ID [CALL]",
		Short: "Answer a pending approval and resume its turn",
		Long:  "Answer a pending approval of a conversation and resume its turn. Without a flag the answer is yes. CALL is needed only if several are pending.",
		Example: "  fermata approve 01a1df48\n" +
			"  fermata approve 01a1df48 --deny --message \"use a branch\"",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return approve(cmd.Context(), s, f, a)
		},
	}
	f.Register(cmd.Flags())
	for _, name := range []string{"model", "sandbox", "ask-for-approval", "add-dir", "full-auto", "dangerously-bypass-approvals-and-sandbox", "yolo", "oss", "demo", "cd"} {
		_ = cmd.Flags().MarkHidden(name) // they may only say what the turn has: see keeps
	}
	cmd.Flags().BoolVar(&f.deny, "deny", false, "answer no; the turn continues without it")
	cmd.Flags().BoolVar(&f.stop, "stop", false, "answer no and interrupt the turn")
	cmd.Flags().BoolVar(&f.session, "session", false, "answer yes, also for the same command later")
	cmd.Flags().StringVar(&f.message, "message", "", "with --deny: a `TEXT` for the model")
	cmd.Flags().BoolVar(&f.json, "json", false, "print events as JSON, one per line")
	cmd.Flags().StringVarP(&f.answerTo, "output-last-message", "o", "", "also write the answer to `FILE`")
	return cmd
}

func approve(ctx context.Context, s cli.Streams, f approveFlags, a []string) error {
	if err := errors.Join(f.check(), checkAnswerFile(f.answerTo)); err != nil {
		return err
	}
	f.Client, f.Detachable = "approve", true
	r, err := f.Open(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stopped := cli.StopSignals(ctx)
	id, err := app.Find(ctx, r.Engine, a[0])
	if err != nil {
		return err
	}
	defer awaitOthers(ctx, s, r) // if another answer is first
	snap, err := r.Engine.Resume(ctx, id)
	if err != nil {
		return cli.StoppedBy(stopped(), err)
	}
	cli.ReportRepairs(s, snap)
	if err := f.keeps(r, snap.Settings); err != nil {
		return err
	}
	call, err := openCall(snap, a[1:])
	if err != nil {
		return err
	}
	answer := p.Approve{Call: call, Decision: f.decision(), Message: f.message}
	o := exec.Options{Output: cli.Printing(s, cli.ColorAuto)}
	o.Conversation, o.Approve, o.Before, o.Notices = id, &answer, snap.Usage, append(notices(r.Warnings), snap.Recovered...)
	o.HideThought = r.Config.HideReasoning
	o.Park, o.JSON, o.ResumeFlags = true, f.json, resumeFlags(r.Config, snap.Settings)
	return runTurn(ctx, s, r.Engine, o, f.answerTo, stopped)
}

// keeps refuses flags that ask for another model, policy or directory than the turn
// has: it continues as it was started, so they would have no effect.
func (f approveFlags) keeps(r *app.App, now p.Settings) error {
	over := r.Config.Overrides(now)
	if f.Dir != "" {
		over.Cwd = &r.Cwd
	}
	if had, wanted := settingsText(now), settingsText(over.Apply(now)); had != wanted {
		return &cli.ExitError{
			Code: cli.ExitUsage, Err: errors.New("approve: the turn keeps the settings that it was started with; a flag or -c asks for others"),
			Hint: "leave it out, and give it to fermata exec resume for the next turn",
		}
	}
	return nil
}

// settingsText is settings in a form that can be compared.
func settingsText(s p.Settings) string {
	b, _ := json.Marshal(s) // it was read from such a form
	return string(b)
}

// check refuses answers that contradict themselves.
func (f approveFlags) check() error {
	said := 0
	for _, b := range []bool{f.deny, f.stop, f.session} {
		if b {
			said++
		}
	}
	switch {
	case said > 1:
		return cli.Usagef("approve: --deny, --stop and --session exclude each other")
	case f.message != "" && !f.deny:
		return cli.Usagef("approve: --message needs --deny")
	}
	return nil
}

func (f approveFlags) decision() p.Decision {
	switch {
	case f.stop:
		return p.Abort
	case f.deny:
		return p.Denied
	case f.session:
		return p.ApprovedForSession
	}
	return p.Approved
}

// openCall is the call that is meant: the named one, or the only one there is.
func openCall(snap engine.Snapshot, named []string) (p.CallID, error) {
	if len(named) == 1 {
		id, err := p.ParseItemID(named[0])
		if err != nil {
			return id, cli.Usagef("approve: %w", err)
		}
		return id, nil
	}
	switch len(snap.PendingApprovals) {
	case 0:
		return p.CallID{}, &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("conversation %s has no pending approval", snap.ID)}
	case 1:
		return snap.PendingApprovals[0], nil
	}
	return p.CallID{}, cli.Usagef("approve: several approvals are pending; name one of %v", snap.PendingApprovals)
}
