package main

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

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// execFlags are the flags of exec and exec resume.
type execFlags struct {
	runFlags
	resume    string
	fork      bool // go on with a copy
	returned  bool // send what was returned again
	last      bool
	all       bool
	ephemeral bool
	json      bool
	park      bool
	images    []string
	schema    string // file
	answerTo  string // file
	color     string
	skipRepo  bool // work also where there is no git repository
}

func execCommand(s streams) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:     "exec [PROMPT|-]",
		Aliases: []string{"e"},
		Short:   "run one turn: progress on stderr, the answer alone on stdout",
		Long: "Run one turn and print the answer on stdout; everything else goes to stderr. Without PROMPT, or with -, it is read from stdin.\n" +
			"With both, what comes on stdin is put behind PROMPT.\n" +
			"Ctrl-C, SIGTERM or SIGHUP stops the turn and everything it runs, and prints how to go on; asking again ends fermata at once.\n" +
			"Outside a git repository it refuses to run, unless --skip-git-repo-check is given, the configuration trusts the directory, or the model is the demo.\n\n" +
			exitCodes,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if f.resume == "" && cmd.Flags().Changed("resume") {
				return usage("--resume: %w", app.ErrWhich)
			}
			return runExec(cmd.Context(), s, f, f.resume, a)
		},
	}
	f.register(cmd.PersistentFlags())
	cmd.Flags().StringVar(&f.resume, "resume", "", "resume this conversation")
	cmd.AddCommand(execResumeCommand(s, &f), execForkCommand(s, &f))
	return cmd
}

func (f *execFlags) register(fs *pflag.FlagSet) {
	f.runFlags.register(fs)
	fs.BoolVar(&f.last, "last", false, "resume the conversation changed last in this directory")
	fs.BoolVar(&f.all, "all", false, "with --last: in any directory")
	fs.BoolVar(&f.ephemeral, "ephemeral", false, "keep nothing on disk")
	fs.BoolVar(&f.json, "json", false, "print events as lines of JSON")
	fs.BoolVar(&f.json, "experimental-json", false, "the same as --json")
	fs.BoolVar(&f.park, "park", false, "leave a turn that needs an approval: exit code 3, and fermata approve goes on")
	fs.StringArrayVarP(&f.images, "image", "i", nil, "show the model this image; several are separated by commas")
	fs.StringVar(&f.schema, "output-schema", "", "the answer shall have the form that the JSON schema in this file describes")
	fs.StringVarP(&f.answerTo, "output-last-message", "o", "", "write the answer to this file as well")
	fs.StringVar(&f.color, "color", colorAuto, "colour the progress: always, never, or auto, which is on a terminal only")
	fs.BoolVar(&f.skipRepo, skipRepoFlag, false, "run outside a git repository too")
	registerIgnored(fs)
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

func execResumeCommand(s streams, f *execFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [ID|--last] [PROMPT|-]",
		Short: "go on with a conversation",
		Args:  args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			name, prompt, err := f.which("resume", a)
			if err != nil {
				return err
			}
			return runExec(cmd.Context(), s, *f, name, prompt)
		},
	}
	cmd.Flags().BoolVar(&f.returned, "returned", false, "send the messages that were not delivered before the last turn ended, then PROMPT, if any")
	return cmd
}

// which takes the arguments of resume and fork apart: the conversation, which is not
// named if it is the last one, and the prompt.
func (f *execFlags) which(verb string, a []string) (name string, prompt []string, err error) {
	if f.last {
		return "", a, nil
	}
	if len(a) == 0 || a[0] == "" {
		return "", nil, usage("%s: %w name it, or say --last", verb, app.ErrWhich)
	}
	return a[0], a[1:], nil
}

func execForkCommand(s streams, f *execFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "fork ID|--last [PROMPT|-]",
		Short: "go on with a copy of a conversation; without a prompt, only copy it and print its id",
		Args:  args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			name, prompt, err := f.which("fork", a)
			if err != nil {
				return err
			}
			if len(prompt) == 0 {
				return runFork(cmd.Context(), s, *f, name)
			}
			f.fork = true
			return runExec(cmd.Context(), s, *f, name, prompt)
		},
	}
}

// runFork copies a conversation and tells how the copy is called.
func runFork(ctx context.Context, s streams, f execFlags, name string) error {
	if f.ephemeral {
		return usage("%w", errEphemeral)
	}
	r, err := f.openApp(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	id, err := f.find(ctx, r, name)
	if err != nil {
		return err
	}
	fork, err := r.Engine.Fork(ctx, id, 0)
	if err != nil {
		return err
	}
	if f.json {
		return exec.PrintThread(s.out, fork)
	}
	_, err = fmt.Fprintln(s.out, fork)
	return err
}

// The values of --color.
const (
	colorAlways = "always"
	colorNever  = "never"
	colorAuto   = "auto"
)

// printing says where a turn is printed, and how. Colour is for progress only.
func printing(s streams, color string) exec.Options {
	o := exec.Options{Out: s.rawOut, Err: s.rawErr, OutTerminal: terminal(s.rawOut), ErrTerminal: terminal(s.rawErr)}
	o.Width = func() int { return columns(s.rawErr) }
	term := os.Getenv("TERM")
	o.Plain = term == "" || term == "dumb"
	o.Color = color == colorAlways || color == colorAuto && o.ErrTerminal && !o.Plain && os.Getenv("NO_COLOR") == ""
	return o
}

// sdkOriginator is how the Codex SDK for TypeScript introduces itself.
const sdkOriginator = "codex_sdk_ts"

var errEphemeral = errors.New("--ephemeral keeps nothing, but a turn that is parked and a conversation that is gone on with are kept")

// runExec runs one turn. name is the conversation to resume, if any.
func runExec(ctx context.Context, s streams, f execFlags, name string, a []string) error {
	if !slices.Contains([]string{colorAlways, colorNever, colorAuto}, f.color) {
		return usage("--color: always, never or auto, not %q", f.color)
	}
	if len(a) > 1 {
		return usage("exec: one prompt, please; got %d", len(a))
	}
	if f.ephemeral && (f.park || f.last || name != "") {
		return usage("%w", errEphemeral)
	}
	in, err := f.input(s, a)
	if err != nil {
		return err
	}
	r, err := f.openApp(ctx, s)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stopped := stopSignals(ctx)
	o := printing(s, f.color)
	o.Turn.Content = in.content
	o.Ephemeral, o.JSON, o.Park, o.Notices = f.ephemeral, f.json, f.park, notices(r.Warnings)
	o.HideThought = r.Config.HideReasoning
	if r.Config.Originator == sdkOriginator { // it stops a turn by SIGTERM
		o.OwnStop = func() bool { return stopped() == unix.SIGTERM }
	}
	if err := f.conversation(ctx, s, r, name, in.schema, &o); err != nil {
		return stoppedBy(stopped(), err)
	}
	return runTurn(ctx, s, r, o, f.answerTo, stopped)
}

// runTurn runs the turn and makes its end an exit code. The answer goes to the
// file answerTo too, if that is set.
func runTurn(ctx context.Context, s streams, r *app.App, o exec.Options, answerTo string, stopped func() os.Signal) error {
	if o.JSON { // told as it goes: without a reader there is no point in going on
		ctx = whileRead(ctx, s.rawOut)
	}
	end, err := exec.Run(ctx, r.Engine, o)
	var parked *exec.ParkedError
	if errors.As(err, &parked) {
		return waiting(s, o, parked)
	}
	if errors.Is(err, exec.ErrUnread) { // nor would anybody read what we say of it
		return &exitError{code: signalCode(stopped())}
	}
	if errors.Is(err, errUnread) { // before the turn began
		return &exitError{code: exitUnread, err: fmt.Errorf("stopped: %w", errUnread)}
	}
	if err != nil && !errors.Is(err, exec.ErrAnswer) {
		return stoppedBy(stopped(), err)
	}
	if answerTo != "" && end.End.Reason == p.Completed {
		if err := os.WriteFile(answerTo, []byte(end.Message), 0o666); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	if err != nil {
		return unwritten(s, o, end, err)
	}
	return exitFor(end, stopped())
}

// waiting tells what a parked turn waits for, and how to answer.
func waiting(s streams, o exec.Options, e *exec.ParkedError) error {
	if o.JSON {
		exec.PrintError(s.out, fmt.Errorf("conversation %s: %w", o.Conversation, e))
	}
	fmt.Fprintf(s.err, "fermata: conversation %s waits for an approval\n", o.Conversation)
	for _, what := range e.Asks {
		fmt.Fprintf(s.err, "  %s\n", safetext.Strip(what))
	}
	fmt.Fprintf(s.err, "to answer: fermata approve %s [CALL] [--deny | --stop]\n", o.Conversation)
	return &exitError{code: exitWaiting}
}

// unwritten is how a run ends whose stdout took no more. A reader that has left
// has seen what it wanted: there is something to say only if the turn was stopped for it.
func unwritten(s streams, o exec.Options, end engine.TurnEnd, err error) error {
	left := errors.Is(err, unix.EPIPE)
	if end.End.Reason == p.Completed && left {
		return &exitError{code: exitUnread}
	}
	exit := &exitError{code: exitFailed, err: err}
	if left {
		exit = &exitError{code: exitUnread, err: fmt.Errorf("stopped: %w", errUnread)}
	}
	if end.End.Reason != p.Completed && !o.Ephemeral {
		exit.hint = o.GoOn() + " goes on"
	}
	return exit
}

// exitFor is the truthful exit code of a turn.
func exitFor(end engine.TurnEnd, by os.Signal) error {
	switch {
	case end.End.Reason == p.Completed:
		return nil
	case by != nil:
		return &exitError{code: signalCode(by)}
	}
	return &exitError{code: exitFailed}
}

// conversation finds the conversation to resume, or begins one.
func (f execFlags) conversation(ctx context.Context, s streams, r *app.App, name string, schema json.RawMessage, o *exec.Options) error {
	from := r.Config.ExecSettings
	if f.park { // somebody will answer, so what the configuration says of asking is meant
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
		o.Conversation, err = r.Engine.Create(ctx, settings)
		return err
	}
	snap, err := f.open(ctx, r, name)
	if err != nil {
		return err
	}
	tellRepairs(s, snap)
	if err := f.offerReturned(s, snap, o); err != nil {
		return err
	}
	over := r.Config.Overrides(snap.Settings)
	if over.Approval != nil { // it means what it means in a new conversation
		over.Approval = new(from(config.Choice{}, "", "").Approval)
	}
	over.OutputSchema = append(json.RawMessage{}, schema...) // not nil: that of an earlier run is over
	if f.dir != "" {
		over.Cwd = &r.Cwd
	}
	o.Conversation, o.Before, o.Notices = snap.ID, snap.Usage, append(o.Notices, snap.Recovered...)
	if kept(over.Apply(snap.Settings)) != kept(snap.Settings) { // a message without settings of its own can join a turn
		o.Turn.Overrides = &over
	}
	err = f.guard(r.Config, over.Apply(snap.Settings), o)
	if err != nil && f.fork {
		_ = r.Engine.Delete(ctx, snap.ID) // nobody has heard of it
	}
	return err
}

// offerReturned sends messages again that were not delivered, or says that there
// are some.
func (f execFlags) offerReturned(s streams, snap engine.Snapshot, o *exec.Options) error {
	if f.returned {
		if len(snap.Returned) == 0 && len(o.Turn.Content) == 0 {
			return &exitError{code: exitFailed, err: errors.New("--returned: every message was delivered"), hint: "give a prompt"}
		}
		var content []p.Content
		for _, in := range snap.Returned {
			content = append(content, in.Content...)
		}
		o.Turn.Content = append(content, o.Turn.Content...)
		return nil
	}
	for _, in := range snap.Returned {
		text := p.PlainText(in.Content)
		fmt.Fprintf(s.err, "fermata: this message was not delivered before and is not part of this turn: %s\nto send it: fermata exec resume %s %s\n",
			text, snap.ID, shellQuote(text))
		o.Notices = append(o.Notices, "not delivered before: "+text)
	}
	return nil
}

// shellQuote writes a text as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// open opens the conversation to go on with, or a copy of it.
func (f execFlags) open(ctx context.Context, r *app.App, name string) (engine.Snapshot, error) {
	id, err := f.find(ctx, r, name)
	if err == nil && f.fork {
		id, err = r.Engine.Fork(ctx, id, 0)
	}
	if err != nil {
		return engine.Snapshot{}, err
	}
	return r.Engine.Resume(ctx, id)
}

// notices are the warnings of the configuration, for who reads lines and not stderr.
func notices(warnings []config.Warning) (words []string) {
	for _, w := range warnings {
		words = append(words, w.String())
	}
	return words
}

// tellRepairs says what was put right when a conversation was opened.
func tellRepairs(s streams, snap engine.Snapshot) {
	for _, word := range snap.Recovered {
		fmt.Fprintf(s.err, "fermata: %s\n", word)
	}
}

func (f execFlags) find(ctx context.Context, r *app.App, name string) (p.ConversationID, error) {
	if name != "" {
		return app.Find(ctx, r.Engine, name)
	}
	o := engine.ListOptions{Limit: 1}
	if !f.all {
		o.Cwd = r.Cwd
	}
	page, err := r.Engine.List(ctx, o)
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", &exitError{
			code: exitFailed, err: fmt.Errorf("no conversation was begun in %s", r.Cwd),
			hint: "--last --all takes the last one of any directory",
		}
	}
	return page.Items[0].ID, nil
}
