package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/review"
	"github.com/fermata-agent/fermata/internal/git"
	p "github.com/fermata-agent/fermata/protocol"
)

func reviewCommand(s cli.Streams) *cobra.Command {
	f := execFlags{review: true}
	var t review.Target
	cmd := &cobra.Command{
		Use:   "review [INSTRUCTIONS|-]",
		Short: "Review changes, without changing anything",
		Long: "Ask the model to review changes: what differs from the last commit, a branch, or one commit. The findings go to stdout, everything\n" +
			"else to stderr. Commands that the model runs can read everything and write nothing.\n\n" +
			"INSTRUCTIONS say what to look at in particular; if they are -, they are read from stdin.\n\n" +
			cli.ExitCodes,
		Example: "  fermata review\n" +
			"  fermata review --base main\n" +
			"  fermata review --commit HEAD~2 \"Can this deadlock?\"\n" +
			"  fermata review --base main --json | jq .",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := checkTarget(cmd.Flags()); err != nil {
				return err
			}
			if len(a) > 0 {
				only := s
				if a[0] != "-" {
					only.In = nil // stdin is read only if that is asked for
				}
				text, err := readPrompt(only, a)
				if err != nil {
					return err
				}
				t.Instructions = text
			}
			return runReview(cmd.Context(), s, f, t)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&t.Uncommitted, "uncommitted", false, "review what differs from the last commit, new files too (the default)")
	fs.StringVar(&t.Base, "base", "", "review what this branch has changed since it left `BRANCH`")
	fs.StringVar(&t.Commit, "commit", "", "review the commit `SHA`")
	f.RegisterConfig(fs)
	f.RegisterModel(fs)
	f.registerOutput(fs)
	return cmd
}

// checkTarget refuses flags that name nothing, or more than one thing.
func checkTarget(fs *pflag.FlagSet) error {
	given := ""
	for _, name := range []string{"uncommitted", "base", "commit"} {
		switch flag := fs.Lookup(name); {
		case !flag.Changed:
		case flag.Value.String() == "":
			return cli.Usagef("--%s is empty: name what to review", name)
		case given != "":
			return cli.Usagef("--%s and --%s cannot be combined: review one thing at a time", given, name)
		default:
			given = name
		}
	}
	return nil
}

// runReview runs a review as a turn that can only read.
func runReview(ctx context.Context, s cli.Streams, f execFlags, t review.Target) error {
	f.Typed.Sandbox, f.Typed.Approval = string(p.SandboxReadOnly), string(p.ApprovalNever)
	l, err := f.Load(s)
	if err != nil {
		return err
	}
	repo, err := app.OpenGit(ctx, l.Config.Home, l.Options.Cwd)
	if errors.Is(err, git.ErrNotFound) {
		return &cli.ExitError{
			Code: cli.ExitFailed, Err: fmt.Errorf("%s is %w", l.Options.Cwd, errNoRepo),
			Hint: "a review needs one; -C DIR reviews another directory",
		}
	}
	if err != nil {
		return err
	}
	err = t.Check(ctx, repo)
	repo.Close()
	if err != nil {
		return err
	}
	s.In = nil // the instructions are all there is to read
	return runExec(ctx, s, f, "", []string{t.Prompt()})
}
