// Package runcmd holds the commands that run one turn and print it: fermata exec, review and approve. How a
// turn is printed is in package exec.
package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	"github.com/fermata-agent/fermata/internal/surface/exec/lines"
	p "github.com/fermata-agent/fermata/protocol"
)

// execFlags are the flags of exec and exec resume.
type execFlags struct {
	cli.RunFlags
	resume    string
	fork      bool // continue with a copy
	returned  bool // send what was returned again
	last      bool
	all       bool
	ephemeral bool
	json      bool
	park      bool
	now       bool     // try a turn again that is held at a limit
	plan      bool     // the plan is accepted: end plan mode
	revert    p.TurnID // revert this turn and those after it first
	images    []string
	schema    string // file
	answerTo  string // file
	color     string
	skipRepo  bool // work also where there is no git repository
	review    bool // nothing may be changed
	fleet     fleetFlags
}

// Commands returns fermata exec, fermata review and fermata approve.
func Commands(s cli.Streams) []*cobra.Command {
	return []*cobra.Command{execCommand(s), reviewCommand(s), cli.TakesLast(approveCommand(s))}
}

// A Turn is one that another command runs as fermata exec does.
type Turn struct {
	cli.RunFlags
	Images []string // files
	Name   string   // the conversation to resume
	Last   bool     // resume the last one
	All    bool     // of any directory
	Prompt []string // one, or none
}

// Run runs a turn.
func (t Turn) Run(ctx context.Context, s cli.Streams) error {
	f := execFlags{RunFlags: t.RunFlags, images: t.Images, last: t.Last, all: t.All, color: cli.ColorAuto}
	return runExec(ctx, s, f, t.Name, t.Prompt)
}

func execCommand(s cli.Streams) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:     "exec [PROMPT|-]",
		Aliases: []string{"e"},
		Short:   "Run one turn without a terminal UI",
		Long: "Run one turn. The answer goes to stdout, everything else to stderr. Without PROMPT, or if it is -, the prompt is read from stdin;\n" +
			"with both, the text on stdin is appended to PROMPT.\n\n" +
			"Ctrl-C, SIGTERM or SIGHUP interrupts the turn and everything it runs, and prints how to resume. A second one ends fermata at once.\n" +
			"Outside a git repository exec refuses to run, unless --skip-git-repo-check is given or the configuration trusts the directory.\n\n" +
			cli.ExitCodes,
		Example: "  fermata exec \"Run the tests and fix what fails\"\n" +
			"  git diff | fermata exec \"Review this change\"\n" +
			"  fermata exec --json -s workspace-write \"Update the changelog\"\n" +
			"  fermata exec resume --last \"Now commit it\"\n" +
			"  fermata exec --fleet --label gpu \"Run the benchmarks\"",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if f.resume == "" && cmd.Flags().Changed("resume") {
				return cli.Usagef("--resume: %w", app.ErrWhich)
			}
			if err := f.fleet.check(cmd.Flags(), f); err != nil {
				return err
			}
			return runExec(cmd.Context(), s, f, f.resume, a)
		},
	}
	f.register(cmd.PersistentFlags())
	cmd.Flags().StringVar(&f.resume, "resume", "", "resume conversation `ID`")
	f.fleet.register(cmd.Flags())
	cmd.AddCommand(execResumeCommand(s, &f), execForkCommand(s, &f))
	return cmd
}

func (f *execFlags) register(fs *pflag.FlagSet) {
	f.RunFlags.Register(fs)
	f.registerOutput(fs)
	fs.BoolVar(&f.last, "last", false, "resume (or fork) the conversation that was changed last in this directory")
	fs.BoolVar(&f.all, "all", false, "with --last: look in all directories")
	fs.BoolVar(&f.json, "experimental-json", false, "same as --json")
	fs.BoolVar(&f.Detach, "detach", false, "run the turn in fermata serve: it continues if the terminal is closed; fermata attach joins it")
	fs.BoolVar(&f.park, "park", false, "if an approval is needed, exit with code 3; fermata approve resumes the turn")
	fs.BoolVar(&f.Typed.Hold, "hold", false, "at a limit of the model service, wait until it resets instead of failing")
	fs.StringArrayVarP(&f.images, "image", "i", nil, "attach image `FILE`; separate several by commas")
	fs.BoolVar(&f.skipRepo, skipRepoFlag, false, "run outside a git repository")
	registerIgnored(fs)
}

// registerOutput adds the flags that say what becomes of the answer.
func (f *execFlags) registerOutput(fs *pflag.FlagSet) {
	fs.BoolVar(&f.ephemeral, "ephemeral", false, "do not save the conversation")
	fs.BoolVar(&f.json, "json", false, "print events as JSON, one per line")
	fs.StringVar(&f.schema, "output-schema", "", "require an answer that matches the JSON schema in `FILE`")
	fs.StringVarP(&f.answerTo, "output-last-message", "o", "", "also write the answer to `FILE`")
	fs.StringVar(&f.color, "color", cli.ColorAuto, "color the progress, `WHEN`: always, never, auto")
}

// registerIgnored takes flags that scripts written for Codex pass and that mean
// nothing here.
func registerIgnored(fs *pflag.FlagSet) {
	fs.String("thread-source", "", "accepted and ignored")
	fs.String("cyber-access-program", "", "accepted and ignored")
	for _, name := range []string{"thread-source", "cyber-access-program"} {
		_ = fs.MarkHidden(name)
	}
}

func execResumeCommand(s cli.Streams, f *execFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [ID|--last] [PROMPT|-]",
		Short: "Resume a conversation with a new prompt",
		Long:  "Resume a conversation with a new prompt. ID is an id, the beginning of one, or a title.",
		Example: "  fermata exec resume --last \"What is left to do?\"\n" +
			"  fermata exec resume 01a1df48 \"Continue\"",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			name, prompt, err := f.which("resume", a)
			if err != nil {
				return err
			}
			return runExec(cmd.Context(), s, *f, name, prompt)
		},
	}
	cmd.Flags().BoolVar(&f.now, "now", false, "retry a turn that is held at a limit of the service; with -m, with another model")
	cmd.Flags().BoolVar(&f.plan, "accept-plan", false, "accept the plan of a conversation in plan mode (/plan): the turn may change files again")
	cmd.Flags().IntVar((*int)(&f.revert), "revert", 0, "first revert turn `N` and later turns: the model no longer sees them")
	cmd.Flags().BoolVar(&f.returned, "returned", false, "send the messages that were not delivered, then PROMPT, if any; fermata returned lists them")
	return cmd
}

// which takes the arguments of resume and fork apart: the conversation, which is not
// named if it is the last one, and the prompt.
func (f *execFlags) which(verb string, a []string) (name string, prompt []string, err error) {
	if f.last {
		return "", a, nil
	}
	if len(a) == 0 || a[0] == "" {
		return "", nil, cli.Usagef("%s: %w", verb, app.ErrWhich)
	}
	return a[0], a[1:], nil
}

func execForkCommand(s cli.Streams, f *execFlags) *cobra.Command {
	return &cobra.Command{
		Use:               "fork ID|--last [PROMPT|-]",
		Short:             "Continue with a copy of a conversation",
		Long:              "Copy a conversation and continue with the copy. Without PROMPT, only copy it and print the id of the copy.",
		Example:           "  fermata exec fork 01a1df48 \"Try it with a map instead\"",
		ValidArgsFunction: cli.CompleteIDs(false),
		Args:              cli.Args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			name, prompt, err := f.which("fork", a)
			if err != nil {
				return err
			}
			if len(prompt) == 0 {
				if err := checkCopy(cmd.Flags()); err != nil {
					return err
				}
				return runFork(cmd.Context(), s, *f, name)
			}
			f.fork = true
			return runExec(cmd.Context(), s, *f, name, prompt)
		},
	}
}

// copyFlags are those that mean something where a conversation is only copied, or that programs give always.
var copyFlags = []string{"all", "cd", "color", "config", "demo", "ephemeral", "experimental-json", "json", "last", "profile", skipRepoFlag, "strict-config", "thread-source", "cyber-access-program"}

// checkCopy refuses flags that are for a turn.
func checkCopy(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(copyFlags, f.Name) {
			err = cli.Usagef("fork: --%s is for a turn, and without PROMPT there is none", f.Name)
		}
	})
	return err
}

// runFork copies a conversation and tells how the copy is called.
func runFork(ctx context.Context, s cli.Streams, f execFlags, name string) error {
	if f.ephemeral {
		return cli.Usagef("%w", errEphemeral)
	}
	r, err := f.Open(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	id, err := cli.FindOrLast(ctx, r, name, f.all)
	if err != nil {
		return err
	}
	fork, err := r.Engine.Fork(ctx, id, 0)
	if err != nil {
		return err
	}
	if f.json {
		return lines.PrintThread(s.Out, fork)
	}
	_, err = fmt.Fprintln(s.Out, fork)
	return err
}

// sdkOriginator is how the Codex SDK for TypeScript introduces itself.
const sdkOriginator = "codex_sdk_ts"

var errEphemeral = errors.New("--ephemeral cannot be combined with --park, --detach, resume or fork: these need a saved conversation")

// runExec runs one turn. name is the conversation to resume, if any.
func runExec(ctx context.Context, s cli.Streams, f execFlags, name string, a []string) error {
	if err := f.check(name, a); err != nil {
		return err
	}
	in, err := f.input(s, a)
	if err != nil {
		return err
	}
	f.Client, f.Detachable = "exec", !f.ephemeral && !f.fleet.on
	r, err := f.Open(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := f.fleet.apply(ctx, r); err != nil {
		return err
	}
	o := exec.Options{Output: cli.Printing(s, f.color)}
	ctx, stopped := runSignals(ctx, r.Detached || f.fleet.on, &o)
	context.AfterFunc(ctx, r.Engine.Leave)
	if o.Turn.Content, err = r.Messages().Expand(ctx, in.content); err != nil {
		return cli.StoppedBy(stopped(), err)
	}
	f.setOptions(s, r, stopped, &o)
	if err := f.fleet.reserve(ctx, r, o); err != nil {
		return cli.StoppedBy(stopped(), err)
	}
	defer awaitOthers(ctx, s, r)
	if err := f.conversation(ctx, s, r, name, in.schema, &o); err != nil {
		return cli.StoppedBy(stopped(), err)
	}
	return f.runSubmitted(ctx, s, r, o, stopped)
}

// setOptions sets what flags and configuration say of the output and of approvals.
func (f execFlags) setOptions(s cli.Streams, r *app.App, stopped func() os.Signal, o *exec.Options) {
	o.Ephemeral, o.JSON, o.Park, o.Notices = f.ephemeral, f.json, f.park, notices(r.Warnings)
	o.HideThought = r.Config.HideReasoning
	if r.Config.Originator == sdkOriginator { // it stops a turn by SIGTERM
		o.OwnStop = func() bool { return stopped() == unix.SIGTERM }
	}
	if f.isInteractive(s) {
		o.Prompt = newPrompt(s, r)
	}
}

// runSubmitted runs the turn, here or on a machine of the fleet, and says what was refused in it.
func (f execFlags) runSubmitted(ctx context.Context, s cli.Streams, r *app.App, o exec.Options, stopped func() os.Signal) error {
	e, err := f.fleet.submit(ctx, s, r, o)
	if err != nil {
		return f.fleet.explain(o, stopped(), err)
	}
	var left refusedCalls
	if !f.json { // programs read the items
		o.Refused = left.add
	}
	err = f.fleet.outcome(o, runTurn(ctx, s, e, o, f.answerTo, stopped))
	if err == nil && len(left.list) > 0 {
		left.explain(s, f.howToAllow(ctx, r, o.Conversation, &left))
		if !left.only(p.RefusedQuestion) { // a no is an answer
			return &cli.ExitError{Code: cli.ExitRefused}
		}
	}
	return err
}

// check refuses flags that contradict each other, or of which one would be ignored.
func (f execFlags) check(name string, a []string) error {
	switch {
	case !slices.Contains([]string{cli.ColorAlways, cli.ColorNever, cli.ColorAuto}, f.color):
		return cli.Usagef("--color must be always, never or auto, not %q", f.color)
	case len(a) > 1:
		return cli.Usagef("exec: want one prompt, got %d arguments", len(a))
	case f.ephemeral && (f.park || f.last || name != "" || f.Detach):
		return cli.Usagef("%w", errEphemeral)
	case f.last && name != "":
		return cli.Usagef("--last and --resume exclude each other")
	case f.all && !f.last:
		return cli.Usagef("--all needs --last")
	case f.now && f.returned:
		return cli.Usagef("--now tries the turn again that waits; it sends no message, so leave out --returned")
	}
	return checkAnswerFile(f.answerTo)
}

// awaitOthers waits for turns that run in this process and that it did not follow: other processes started or resumed
// them, with a queued message or an answer to an approval. The end of this process would interrupt them.
func awaitOthers(ctx context.Context, s cli.Streams, r *app.App) {
	r.AwaitTurns(ctx, func(turn p.TurnID) {
		fmt.Fprintf(s.Err, "fermata: waiting for turn %d, which still runs in this process; Ctrl-C interrupts it\n", turn)
	})
}

// runTurn runs the turn and makes its end an exit code. The answer goes to the
// file answerTo too, if that is set.
func runTurn(ctx context.Context, s cli.Streams, e engine.Engine, o exec.Options, answerTo string, stopped func() os.Signal) error {
	if o.JSON && o.Detach == nil { // printed while it runs: without a reader there is no point in continuing
		ctx = cli.WhileRead(ctx, s.RawOut)
	}
	end, err := exec.Run(ctx, e, o)
	if errors.Is(err, exec.ErrDetached) {
		return &cli.ExitError{Code: cli.SignalCode(unix.SIGHUP), Err: errors.New("detached: the turn continues"), Hint: "fermata attach " + string(o.Conversation) + " joins it"}
	}
	var parked *exec.ParkedError
	if errors.As(err, &parked) {
		return explainWait(s, o, parked)
	}
	if errors.Is(err, exec.ErrAnswerNotRead) { // nor would anybody read what we say of it
		return &cli.ExitError{Code: cli.SignalCode(stopped())}
	}
	if errors.Is(err, cli.ErrStdoutClosed) { // before the turn began
		exit := &cli.ExitError{Code: cli.ExitStdoutClosed, Err: fmt.Errorf("interrupted: %w", cli.ErrStdoutClosed)}
		if !o.Ephemeral {
			exit.Hint = "resume with: " + o.ResumeCommand()
		}
		return exit
	}
	if err != nil && !errors.Is(err, exec.ErrAnswer) {
		return cli.StoppedBy(stopped(), err)
	}
	if answerTo != "" && end.End.Reason == p.Completed {
		if err := os.WriteFile(answerTo, []byte(end.Message), 0o666); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	if err != nil {
		return outputError(s, o, end, err)
	}
	return exitFor(end, stopped())
}

// explainWait tells what a parked turn waits for, and how to answer.
func explainWait(s cli.Streams, o exec.Options, e *exec.ParkedError) error {
	if o.JSON {
		lines.PrintError(s.Out, fmt.Errorf("conversation %s: %w", o.Conversation, e))
	}
	if e.Hold != nil {
		fmt.Fprintf(s.Err, "fermata: the message is recorded; conversation %s is %s\nto try now: fermata exec resume %s --now\n", o.Conversation, e, o.Conversation)
		return &cli.ExitError{Code: cli.ExitWaiting}
	}
	fmt.Fprintf(s.Err, "fermata: conversation %s is waiting for approval\n", o.Conversation)
	for _, what := range e.Asks {
		fmt.Fprintf(s.Err, "  %s\n", strings.Join(safetext.Fold(what, foldWidth), "\n    "))
	}
	call := "CALL"
	if len(e.Asks) == 1 { // named, so that the answer is for what is shown here and for no later one
		call, _, _ = strings.Cut(e.Asks[0], ":")
	}
	fmt.Fprintf(s.Err, "to answer: fermata approve %s %s [--deny | --stop]\n", o.Conversation, call)
	return &cli.ExitError{Code: cli.ExitWaiting}
}

// foldWidth is where lines of a command are broken that waits for approval.
const foldWidth = 160

// outputError is how a run ends whose stdout took no more. A reader that has left
// has seen what it wanted: there is something to say only if the turn was stopped for it.
func outputError(s cli.Streams, o exec.Options, end engine.TurnEnd, err error) error {
	left := errors.Is(err, unix.EPIPE)
	if end.End.Reason == p.Completed && left {
		return &cli.ExitError{Code: cli.ExitStdoutClosed}
	}
	exit := &cli.ExitError{Code: cli.ExitFailed, Err: err}
	if left {
		exit = &cli.ExitError{Code: cli.ExitStdoutClosed, Err: fmt.Errorf("interrupted: %w", cli.ErrStdoutClosed)}
	}
	if end.End.Reason != p.Completed && !o.Ephemeral {
		exit.Hint = "resume with: " + o.ResumeCommand()
	}
	return exit
}

// exitFor is the exit code of a turn. One whose end is not on disk has failed: the next process finds it unfinished.
func exitFor(end engine.TurnEnd, by os.Signal) error {
	switch {
	case end.End.Reason == p.Completed && !end.Unsaved:
		return nil
	case by != nil:
		return &cli.ExitError{Code: cli.SignalCode(by)}
	}
	return &cli.ExitError{Code: cli.ExitFailed}
}

// conversation finds the conversation to resume, or begins one.
func (f execFlags) conversation(ctx context.Context, s cli.Streams, r *app.App, name string, schema json.RawMessage, o *exec.Options) error {
	from := r.Config.ExecSettings
	if f.park || o.Prompt != nil { // a user will answer, so what the configuration says of asking counts
		from = r.Config.Settings
	}
	if name == "" && !f.last {
		settings, err := r.NewSettings(from)
		if err != nil {
			return err
		}
		if err := f.guard(r.Config, settings, o); err != nil {
			return err
		}
		settings.Ephemeral, settings.OutputSchema = f.ephemeral, schema
		o.Cost = func(u p.Usage) (float64, bool) { return r.Models.Cost(settings, u) }
		f.fleet.warn(s, settings)
		o.Conversation, err = f.fleet.create(ctx, r, settings)
		return err
	}
	snap, err := f.open(ctx, r, name)
	if err != nil {
		return err
	}
	cli.ReportRepairs(s, snap)
	if err := f.offerReturned(s, snap, o); err != nil {
		return err
	}
	if f.revert != 0 {
		if _, err := r.Engine.Submit(ctx, snap.ID, p.Revert{Before: f.revert}); err != nil {
			return fmt.Errorf("revert turn %d: %w", f.revert, err)
		}
	}
	over := r.Config.Overrides(snap.Settings)
	o.Cost = func(u p.Usage) (float64, bool) { return r.Models.Cost(over.Apply(snap.Settings), u) }
	if f.plan {
		if !snap.Settings.Plan {
			return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("--accept-plan: the conversation is not in plan mode"), Hint: "leave the flag out"}
		}
		over.Plan = new(false)
	}
	if f.now {
		return f.tryNow(ctx, s, r, snap, over, o)
	}
	if wanted := r.Config.OnLimit; snap.Settings.OnLimit != wanted && snap.Hold == nil {
		over.OnLimit = &wanted
	}
	if over.Approval != nil { // it means what it means in a new conversation
		over.Approval = new(from(config.Choice{}, "", "").Approval)
	}
	over.OutputSchema = append(json.RawMessage{}, schema...) // not nil: that of an earlier run is over
	if f.Dir != "" {
		over.Cwd = &r.Cwd
	}
	if err := app.CheckResumed(over.Apply(snap.Settings).Cwd); err != nil && !snap.Active {
		return err
	}
	o.Conversation, o.Before, o.Notices = snap.ID, snap.Usage, append(o.Notices, snap.Recovered...)
	if settingsText(over.Apply(snap.Settings)) != settingsText(snap.Settings) { // a message without settings of its own can join a turn
		o.Turn.Overrides = &over
	}
	err = f.guard(r.Config, over.Apply(snap.Settings), o)
	if err != nil && f.fork {
		_ = r.Engine.Delete(ctx, snap.ID) // no client knows it
	}
	return err
}

// offerReturned sends messages again that were not delivered, or says that there
// are some.
func (f execFlags) offerReturned(s cli.Streams, snap engine.Snapshot, o *exec.Options) error {
	if f.returned {
		if len(snap.Returned) == 0 && len(o.Turn.Content) == 0 {
			return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New("--returned: no message is returned: each was delivered, taken or dropped"), Hint: "give a prompt"}
		}
		var content []p.Content
		for _, in := range snap.Returned {
			content = append(content, in.Content...)
			o.Turn.Returned = append(o.Turn.Returned, in.Input)
		}
		o.Turn.Content = append(content, o.Turn.Content...)
		return nil
	}
	for _, in := range snap.Returned {
		o.Notices = append(o.Notices, "not delivered before: "+p.Written(in.Content))
	}
	if len(snap.Returned) > 0 {
		fmt.Fprintf(s.Err, "fermata: messages that were not delivered before are not part of this turn:\n%s\n", hint.Returned(snap.ID, snap.Returned))
	}
	return nil
}

// open opens the conversation to resume, or a copy of it.
func (f execFlags) open(ctx context.Context, r *app.App, name string) (engine.Snapshot, error) {
	id, err := cli.FindOrLast(ctx, r, name, f.all)
	if err == nil && f.fork {
		id, err = r.Engine.Fork(ctx, id, 0)
	}
	if err != nil {
		return engine.Snapshot{}, err
	}
	return r.Engine.Resume(ctx, id)
}

// notices are the warnings of the configuration for programs that read lines and not stderr. A setting that only has no
// effect here is left out: its line would be an item of type error, and nothing has failed.
func notices(warnings []config.Warning) (words []string) {
	for _, w := range warnings {
		if !w.Ineffective && !w.Foreign {
			words = append(words, w.String())
		}
	}
	return words
}

// runSignals are those of a run. If that is detached, the end of the terminal leaves the turn running.
func runSignals(ctx context.Context, detached bool, o *exec.Options) (context.Context, func() os.Signal) {
	if !detached {
		return cli.StopSignals(ctx)
	}
	detach := make(chan struct{})
	o.Detach = detach
	return cli.StopSignalsBut(ctx, func() {}, func() { close(detach) })
}
