package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/exportcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/fleetcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/importcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/managecmd"
	"github.com/fermata-agent/fermata/cmd/fermata/runcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/servecmd"
	"github.com/fermata-agent/fermata/cmd/fermata/setupcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/storecmd"
	"github.com/fermata-agent/fermata/cmd/fermata/tuicmd"
	"github.com/fermata-agent/fermata/cmd/fermata/updatecmd"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/exec/lines"
)

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, s cli.Streams) int {
	root := newRoot(s, args...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitOK
	}
	exit := asExit(err)
	if exit.Err != nil {
		if wantsLines(root, args) {
			lines.PrintError(s.Out, exit.Err)
		}
		fmt.Fprintf(s.Err, "fermata: %v\n", exit.Err)
		hint := hintFor(exit)
		cmd, _, _ := root.Find(args) // the arguments may be wrong: then it is as far as they are right
		switch {
		case errors.Is(err, app.ErrNoWorkdir) && cmd.Flags().Lookup("cd") == nil:
			hint = "go to another directory"
		case strings.HasSuffix(hint, " -C") && cmd.Flags().Lookup("cd") == nil:
			hint = ""
		case hint == "" && exit.Code == cli.ExitUsage:
			hint = "see " + cmd.CommandPath() + " --help"
		}
		if hint != "" {
			fmt.Fprintf(s.Err, "hint: %s\n", hint)
		}
	}
	return exit.Code
}

// asExit gives an error the exit code that it ends the program with.
func asExit(err error) *cli.ExitError {
	var exit *cli.ExitError
	var notice *app.Error
	switch {
	case errors.As(err, &exit):
		return exit
	case errors.As(err, &notice) && notice.Usage:
		return &cli.ExitError{Code: cli.ExitUsage, Err: err, Hint: notice.Hint}
	case notice != nil:
		return &cli.ExitError{Code: cli.ExitFailed, Err: err, Hint: notice.Hint}
	}
	return &cli.ExitError{Code: cli.ExitFailed, Err: err}
}

// wantsLines reports whether a turn was to be printed as lines of JSON. Then an
// error is a line too, since a program that reads them may look at nothing else. The
// arguments are looked at as they are, for the error may be that they make no sense.
func wantsLines(root *cobra.Command, args []string) bool {
	cmd, _, _ := root.Find(args) // flags may come before its name
	for cmd.HasParent() && cmd.Parent() != root {
		cmd = cmd.Parent()
	}
	if !slices.Contains([]string{"exec", "review", "approve"}, cmd.Name()) {
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
func hintFor(e *cli.ExitError) string {
	var locked *engine.LockedError
	switch {
	case e.Hint != "":
		return e.Hint
	case errors.As(e.Err, &locked):
		return "wait until that process has ended, or stop it; that does not damage the conversation"
	case errors.Is(e.Err, engine.ErrNotFound):
		return "see fermata list"
	case errors.Is(e.Err, config.ErrNoHome):
		return app.HomeHint
	case errors.Is(e.Err, os.ErrPermission), errors.Is(e.Err, unix.EROFS):
		return "set FERMATA_HOME to a directory that you can write to"
	}
	return ""
}

// newRoot makes the root command. If args name a command that runs a turn, scripts
// may do so often, and the others are left out: nothing asks for them.
func newRoot(s cli.Streams, args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:           "fermata",
		Short:         "A coding agent that can be interrupted at any time and resumed with nothing lost",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       cli.Version(),
		Args:          cobra.ArbitraryArgs,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetVersionTemplate("fermata {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run turns:"},
		&cobra.Group{ID: groupManage, Title: "Manage conversations:"},
		&cobra.Group{ID: groupMachine, Title: "Configuration and machine:"},
	)
	addTo(root, groupRun, runcmd.Commands(s)...)
	if !hasCommand(root, args) {
		addOthers(root, s)
	}
	completeFlags(root)
	checkSubcommands(root)
	return root
}

// hasCommand reports whether the first argument is a command that root has.
func hasCommand(root *cobra.Command, args []string) bool {
	return len(args) > 0 && slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == args[0] || c.HasAlias(args[0]) })
}

func addOthers(root *cobra.Command, s cli.Streams) {
	addTo(root, groupRun, tuicmd.Commands(s)...)
	addTo(root, groupRun, servecmd.Commands(s)...)
	addTo(root, groupRun, demoModelCommand(s))
	addTo(root, groupManage, managecmd.Commands(s)...)
	addTo(root, groupManage, exportcmd.Command(s))
	addTo(root, groupManage, importcmd.Command(s))
	addTo(root, groupManage, fleetcmd.Command(s))
	addTo(root, groupManage, storecmd.Command(s.Out, s.Err, cli.Usagef))
	addTo(root, groupMachine, setupcmd.Commands(setupcmd.For(s))...)
	addTo(root, groupMachine, servecmd.MCPCommand(s), sandboxCommand(s), completionCommand(s), manCommand(s), updatecmd.Command(s), versionCommand(s))
	tuicmd.Interactive(root, s)
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
