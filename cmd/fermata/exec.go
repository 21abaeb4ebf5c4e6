package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// execFlags are the flags of exec and exec resume.
type execFlags struct {
	runFlags
	resume    string
	last      bool
	all       bool
	ephemeral bool
	json      bool
	park      bool
}

func execCommand(s streams) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:     "exec [PROMPT|-]",
		Aliases: []string{"e"},
		Short:   "run one turn: progress on stderr, the answer alone on stdout",
		Long: "Run one turn and print the answer on stdout; everything else goes to stderr. Without PROMPT, or with -, it is read from stdin.\n" +
			"Ctrl-C or SIGTERM stops the turn and everything it runs, and prints how to go on; a second one ends fermata at once.\n\n" +
			"Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 waiting for an approval, 130 stopped by SIGINT, 143 by SIGTERM.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return runExec(cmd.Context(), s, f, f.resume, a)
		},
	}
	f.register(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVar(&f.last, "last", false, "resume the conversation changed last in this directory")
	cmd.PersistentFlags().BoolVar(&f.all, "all", false, "with --last: in any directory")
	cmd.PersistentFlags().BoolVar(&f.ephemeral, "ephemeral", false, "keep nothing on disk")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print events as lines of JSON")
	cmd.PersistentFlags().BoolVar(&f.json, "experimental-json", false, "the same as --json")
	cmd.PersistentFlags().BoolVar(&f.park, "park", false, "leave a turn that needs an approval: exit code 3, and fermata approve goes on")
	cmd.Flags().StringVar(&f.resume, "resume", "", "resume this conversation")
	cmd.AddCommand(execResumeCommand(s, &f))
	return cmd
}

func execResumeCommand(s streams, f *execFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [ID|--last] [PROMPT|-]",
		Short: "go on with a conversation",
		Args:  args(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if f.last {
				return runExec(cmd.Context(), s, *f, "", a)
			}
			if len(a) == 0 || a[0] == "" {
				return usage("resume: %w name it, or say --last", errWhich)
			}
			return runExec(cmd.Context(), s, *f, a[0], a[1:])
		},
	}
}

// runExec runs one turn. name is the conversation to resume, if any.
func runExec(ctx context.Context, s streams, f execFlags, name string, a []string) error {
	if len(a) > 1 {
		return usage("exec: one prompt, please; got %d", len(a))
	}
	prompt, err := readPrompt(s, a)
	if err != nil {
		return err
	}
	r, err := f.runtime(ctx, s)
	if err != nil {
		return err
	}
	defer r.close()
	ctx, stopped := stopSignals(ctx)
	o := exec.Options{
		Turn: p.UserTurn{Content: p.Text(prompt)}, Ephemeral: f.ephemeral, JSON: f.json, Park: f.park,
		Out: s.out, Err: s.err, OutTerminal: terminal(s.out), ErrTerminal: terminal(s.err),
	}
	if err := f.conversation(ctx, s, r, name, &o); err != nil {
		return err
	}
	return runTurn(ctx, s, r, o, stopped)
}

// runTurn runs the turn and makes its end an exit code.
func runTurn(ctx context.Context, s streams, r *runtime, o exec.Options, stopped func() os.Signal) error {
	end, err := exec.Run(ctx, r.engine, o)
	if errors.Is(err, exec.ErrParked) {
		fmt.Fprintf(s.err, "fermata: conversation %s waits for an approval\nto answer: fermata approve %[1]s [--deny]\n", o.Conversation)
		return &exitError{code: exitWaiting}
	}
	if err != nil {
		return err
	}
	return exitFor(end, stopped())
}

// exitFor is the truthful exit code of a turn.
func exitFor(end engine.TurnEnd, by os.Signal) error {
	switch {
	case end.End.Reason == p.Completed:
		return nil
	case by == unix.SIGTERM:
		return &exitError{code: exitTerminated}
	case by != nil:
		return &exitError{code: exitInterrupted}
	}
	return &exitError{code: exitFailed}
}

// conversation finds the conversation to resume, or begins one.
func (f execFlags) conversation(ctx context.Context, s streams, r *runtime, name string, o *exec.Options) error {
	if name == "" && !f.last {
		settings, err := r.settings()
		if err != nil {
			return err
		}
		settings.Ephemeral = f.ephemeral
		o.Conversation, err = r.engine.Create(ctx, settings)
		return err
	}
	id, err := f.find(ctx, r, name)
	if err != nil {
		return err
	}
	snap, err := r.engine.Resume(ctx, id)
	if err != nil {
		return err
	}
	for _, word := range snap.Repaired {
		fmt.Fprintf(s.err, "fermata: %s\n", word)
	}
	over := r.config.Overrides(snap.Settings)
	if f.dir != "" {
		over.Cwd = &r.cwd
	}
	o.Conversation, o.Before, o.Turn.Overrides = id, snap.Usage, &over
	return nil
}

func (f execFlags) find(ctx context.Context, r *runtime, name string) (p.ConversationID, error) {
	if name != "" {
		return resolve(ctx, r.engine, name)
	}
	o := engine.ListOptions{Limit: 1}
	if !f.all {
		o.Cwd = r.cwd
	}
	page, err := r.engine.List(ctx, o)
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", &exitError{
			code: exitFailed, err: fmt.Errorf("no conversation was begun in %s", r.cwd),
			hint: "--last --all takes the last one of any directory",
		}
	}
	return page.Items[0].ID, nil
}

var errNoPrompt = errors.New("no prompt: give one as an argument or on stdin")

// readPrompt takes the prompt from the argument, or from stdin.
func readPrompt(s streams, a []string) (string, error) {
	if len(a) == 1 && a[0] != "-" {
		if strings.TrimSpace(a[0]) == "" {
			return "", &exitError{code: exitFailed, err: errNoPrompt}
		}
		return a[0], nil
	}
	if terminal(s.in) {
		return "", usage("%w", errNoPrompt)
	}
	b, err := io.ReadAll(s.in)
	if err != nil {
		return "", fmt.Errorf("read the prompt from stdin: %w", err)
	}
	text, err := decodeText(b)
	if err != nil {
		return "", err
	}
	if text == "" {
		return "", &exitError{code: exitFailed, err: errNoPrompt}
	}
	return text, nil
}

// shutdownBound is how long the end of the program may take.
const shutdownBound = 3 * time.Second
