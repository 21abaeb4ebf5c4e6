package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/setupcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/storecmd"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec/lines"
)

// The exit codes. They are part of what scripts may rely on.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitWaiting     = 3 // for an approval, or for a limit of the service
	exitRefused     = 4 // the turn completed, but something was refused and nobody could be asked
	exitInterrupted = 130
	exitTerminated  = 143
)

// streams are where a command reads and writes. Answers go to out, everything
// else (progress, errors, hints) to err.
//
// What a command prints was often written by others: a model, a command, a file. Whatever
// it is, a terminal behind out or err is not steered by it; a pipe or a file gets every
// byte. rawOut and rawErr are below them, for what draws on the terminal and sanitizes
// by itself.
type streams struct {
	in             io.Reader
	out, err       io.Writer
	rawOut, rawErr io.Writer
}

func newStreams(in io.Reader, out, err io.Writer) streams {
	return streams{in: in, out: sanitize(out), err: sanitize(err), rawOut: out, rawErr: err}
}

// sanitize returns w, or a writer that makes text safe for it if it is a terminal.
func sanitize(w io.Writer) io.Writer {
	if terminal(w) {
		return safetext.NewWriter(w)
	}
	return w
}

func stdio() streams { return newStreams(os.Stdin, os.Stdout, os.Stderr) }

// An exitError ends the program with a code. Without err nothing is printed:
// what there was to say has been said.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	exit := asExit(err)
	if exit.err != nil {
		if wantsLines(root, args) {
			lines.PrintError(s.out, exit.err)
		}
		fmt.Fprintf(s.err, "fermata: %v\n", exit.err)
		hint := hintFor(exit)
		if hint == "" && exit.code == exitUsage {
			cmd, _, _ := root.Find(args) // the arguments may be wrong: then it is as far as they are right
			hint = "see " + cmd.CommandPath() + " --help"
		}
		if hint != "" {
			fmt.Fprintf(s.err, "hint: %s\n", hint)
		}
	}
	return exit.code
}

// asExit gives an error the exit code that it ends the program with.
func asExit(err error) *exitError {
	var exit *exitError
	var notice *app.Error
	switch {
	case errors.As(err, &exit):
		return exit
	case errors.As(err, &notice) && notice.Usage:
		return &exitError{code: exitUsage, err: err, hint: notice.Hint}
	case notice != nil:
		return &exitError{code: exitFailed, err: err, hint: notice.Hint}
	}
	return &exitError{code: exitFailed, err: err}
}

// wantsLines reports whether a turn was to be printed as lines of JSON. Then an
// error is a line too, since a program that reads them may look at nothing else. The
// arguments are looked at as they are, for the error may be that they make no sense.
func wantsLines(root *cobra.Command, args []string) bool {
	cmd, _, _ := root.Find(args) // flags may come before its name
	for cmd.HasParent() && cmd.Parent() != root {
		cmd = cmd.Parent()
	}
	if !slices.Contains([]string{"exec", "approve"}, cmd.Name()) {
		return false
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.Contains([]string{"--json", "--experimental-json"}, strings.TrimSuffix(a, "=true"))
	})
}

// hintFor says what to do about an error, if that can be guessed.
func hintFor(e *exitError) string {
	var locked *engine.LockedError
	switch {
	case e.hint != "":
		return e.hint
	case errors.As(e.err, &locked):
		return "wait until that process has ended, or stop it; that does not damage the conversation"
	case errors.Is(e.err, engine.ErrNotFound):
		return "see fermata list"
	case errors.Is(e.err, config.ErrNoHome):
		return app.HomeHint
	case errors.Is(e.err, os.ErrPermission), errors.Is(e.err, unix.EROFS):
		return "set FERMATA_HOME to a directory that you can write to"
	}
	return ""
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "fermata",
		Short:         "A coding agent that can be interrupted at any time and resumed with nothing lost",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args:          cobra.ArbitraryArgs,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("fermata {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run turns:"},
		&cobra.Group{ID: groupManage, Title: "Manage conversations:"},
		&cobra.Group{ID: groupMachine, Title: "Configuration and machine:"},
	)
	addTo(root, groupRun, execCommand(s), takesLast(approveCommand(s)), webCommand(s), mcpServerCommand(s), appServerCommand(s), demoModelCommand(s))
	addTo(root, groupManage, listCommand(s), takesLast(showCommand(s)), takesLast(undoCommand(s)), takesLast(psCommand(s)), takesLast(killCommand(s)), takesLast(renameCommand(s)), takesLast(archiveCommand(s)), unarchiveCommand(s), takesLast(deleteCommand(s)), fsckCommand(s), storecmd.Command(s.out, s.err, usage))
	addTo(root, groupMachine, setupcmd.Commands(setupOptions(s))...)
	addTo(root, groupMachine, mcpCommand(s), sandboxCommand(s), versionCommand(s))
	addTo(root, groupRun, serveCommand(s), attachCommand(s))
	addTo(root, groupManage, takesLast(sendCommand(s)), takesLast(interruptCommand(s)), stopCommand(s))
	interactive(root, s)
	completeFlags(root)
	return root
}

// The groups of the help.
const (
	groupRun     = "run"
	groupManage  = "manage"
	groupMachine = "machine"
)

func addTo(root *cobra.Command, group string, list ...*cobra.Command) {
	for _, c := range list {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// plural is a number of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// args is one of cobra's checks, with our exit code.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if check(cmd, a) != nil {
			return usage("%s: wrong number of arguments: %d; usage: %s", cmd.Name(), len(a), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return nil
	}
}
