package runcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/work"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/fleet/worktree"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// fleetFlags are those of a turn that some machine of a fleet runs.
type fleetFlags struct {
	on    bool
	label string
	wait  time.Duration // until it begins; negative is without end
	dir   string        // to work in, on that machine
	git   git.Source    // what that machine checks out to work in, if its URL is set
	id    string        // what a script calls the submission; empty if it does not

	named *work.Name // what that stands for; nil without one
}

func (f *fleetFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.on, "fleet", false, "let a machine of the fleet run the turn (fermata serve --node); it continues if the terminal is closed")
	fs.StringVar(&f.label, "label", "", "with --fleet: only a machine with the label `L`")
	fs.DurationVar(&f.wait, "wait", -1, "with --fleet: give up if no machine begins the turn within this `TIME`, such as 10m; 0 gives up at once if there is none")
	fs.StringVar(&f.dir, "node-dir", "", "with --fleet: work in the directory `DIR` of that machine, instead of one of the same name as here")
	fs.StringVar(&f.git.URL, "repo", "", "with --fleet: work in a checkout of the repository at `URL`, which that machine makes; what the turn changes is kept")
	fs.StringVar(&f.git.Ref, "commit", "", "with --repo: check out this `COMMIT`, branch or tag, instead of the HEAD of the repository")
	fs.StringVar(&f.id, "id", "", "with --fleet: call the submission `NAME`; the same command with the same name is the same turn, which runs once")
	fs.Lookup("wait").DefValue = "0s" // help does not print it then: it is without end
}

// check refuses what cannot be combined.
func (f *fleetFlags) check(fs *pflag.FlagSet, x execFlags) error {
	if !f.on {
		for _, name := range []string{"label", "wait", "node-dir", "repo", "commit", "id"} {
			if fs.Changed(name) {
				return cli.Usagef("exec: --%s needs --fleet", name)
			}
		}
		return nil
	}
	switch {
	case x.ephemeral || x.last || x.resume != "" || x.Detach:
		return cli.Usagef("exec: --fleet starts a new conversation that is saved, and detaches by itself: leave out --ephemeral, --last, --resume and --detach")
	case x.Snapshot:
		return cli.Usagef("exec: --snapshot is for the machine that runs the turn: start that with fermata serve --node NAME --snapshot")
	case fs.Changed("wait") && f.wait < 0:
		return cli.Usagef("exec: --wait must not be negative")
	case f.dir != "" && !filepath.IsAbs(f.dir):
		return cli.Usagef("exec: --node-dir must begin with /")
	case f.dir != "" && x.Dir != "":
		return cli.Usagef("exec: --cd is a directory here, --node-dir one on the machine that runs the turn: give one of them")
	}
	if err := f.checkGit(fs); err != nil {
		return err
	}
	if fs.Changed("id") {
		if err := work.CheckName(f.id); err != nil {
			return cli.Usagef("exec: --id: %w", err)
		}
	}
	if fs.Changed("label") {
		if err := fleet.CheckLabel(f.label); err != nil {
			return cli.Usagef("exec: --label: %w", err)
		}
	}
	return nil
}

// checkGit refuses what cannot be checked out.
func (f *fleetFlags) checkGit(fs *pflag.FlagSet) error {
	switch {
	case fs.Changed("commit") && !fs.Changed("repo"):
		return cli.Usagef("exec: --commit needs --repo")
	case fs.Changed("commit") && f.git.Ref == "":
		return cli.Usagef("exec: --commit: name a commit, a branch or a tag")
	case !fs.Changed("repo"):
		return nil
	case f.dir != "":
		return cli.Usagef("exec: --repo has the machine that runs the turn make a directory to work in: leave out --node-dir")
	}
	if err := git.CheckURL(f.git.URL); err != nil {
		return cli.Usagef("exec: --repo: %w", err)
	}
	return nil
}

// apply makes the turn work where it is to be run.
func (f *fleetFlags) apply(ctx context.Context, r *app.App) error {
	if !f.on {
		return nil
	}
	if f.git.URL != "" {
		f.git.Ref = work.CommitOf(ctx, r, f.git)
		r.Cwd, r.MadeCwd = worktree.NewDir(r.Config.Home), true
	}
	if f.dir != "" {
		r.Cwd = filepath.Clean(f.dir)
	}
	return work.Check(r)
}

// reserve finds out what the name of the submission stands for, if it has one.
func (f *fleetFlags) reserve(ctx context.Context, r *app.App, o exec.Options) error {
	if f.id == "" {
		return nil
	}
	n, err := work.Reserve(ctx, r, f.id, r.Cwd, o.Turn, work.Options{Label: f.label, Git: f.source()})
	if errors.As(err, new(*work.NameUsedError)) {
		return cli.Usagef("exec: --id: %w", err)
	}
	f.named = &n
	return err
}

// create begins the conversation of the turn.
func (f *fleetFlags) create(ctx context.Context, r *app.App, s p.Settings) (p.ConversationID, error) {
	if f.named == nil {
		return r.Engine.Create(ctx, s)
	}
	return f.named.Conversation, f.named.Create(ctx, r, s)
}

// warn says what a user might not expect of a turn that another machine runs.
func (f *fleetFlags) warn(s cli.Streams, settings p.Settings) {
	if f.on && settings.Sandbox.Mode == p.SandboxReadOnly {
		fmt.Fprintln(s.Err, "fermata: the turn can only read files (sandbox read-only); -s workspace-write lets it change them")
	}
}

// submit returns the engine that the turn is run by: that of this process, or another machine's which has begun it.
func (f *fleetFlags) submit(ctx context.Context, s cli.Streams, r *app.App, o exec.Options) (engine.Engine, error) {
	if !f.on {
		return r.Engine, nil
	}
	return work.Submit(ctx, r, o.Conversation, r.Cwd, o.Turn, work.Options{
		Label: f.label, Wait: f.wait, Git: f.source(), Detach: o.Detach, Name: f.named,
		Say: func(line string) { fmt.Fprintf(s.Err, "fermata: %s\n", safetext.Strip(line)) },
	})
}

// source is what is to be checked out, nil if nothing is.
func (f *fleetFlags) source() *git.Source {
	if f.git.URL == "" {
		return nil
	}
	return &f.git
}

// explain is how a run ends whose turn was not begun.
func (f *fleetFlags) explain(o exec.Options, by os.Signal, err error) error {
	switch {
	case errors.As(err, new(*fleet.UnknownError)):
		return f.unknown(o, err)
	case errors.As(err, new(*fleet.FailedError)):
		return &cli.ExitError{Code: cli.ExitUnknown, Err: err, Hint: "fermata fleet status shows the list; fermata fleet retry has it tried again, fermata fleet drop gives it up"}
	case errors.Is(err, fleet.ErrDetached):
		return &cli.ExitError{Code: cli.SignalCode(unix.SIGHUP), Err: err, Hint: "fermata show -f " + string(o.Conversation) + " follows it, fermata attach joins it once it runs"}
	case by != nil && errors.Is(err, fleet.ErrWithdrawn):
		return &cli.ExitError{Code: cli.SignalCode(by), Err: err}
	}
	return cli.StoppedBy(by, err)
}

// outcome is how a run ends whose turn was begun: a turn that another machine runs goes on if it can no longer be followed.
func (f *fleetFlags) outcome(o exec.Options, err error) error {
	if !f.on || err == nil || errors.As(err, new(*cli.ExitError)) {
		return err
	}
	return f.unknown(o, fmt.Errorf("%w; the turn was submitted, and how it ends is not known: %s", err, o.Conversation))
}

// unknown is how a run ends of whose turn is not known what became of it.
func (f *fleetFlags) unknown(o exec.Options, err error) error {
	hint := "fermata show " + string(o.Conversation) + " says what became of it"
	if f.id != "" {
		hint += "; the same command again, with --id " + f.id + ", is the same turn and runs it at most once"
	}
	return &cli.ExitError{Code: cli.ExitUnknown, Err: err, Hint: hint}
}
