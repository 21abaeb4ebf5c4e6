package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// Find opens the conversations and finds one by its name.
func Find(ctx context.Context, name string) (*remote.Router, p.ConversationID, error) {
	e, err := app.OpenStore(ctx, Version())
	if err != nil {
		return nil, "", err
	}
	id, err := app.Find(ctx, e, name)
	return e, id, err
}

// FindOrLast finds a conversation by its name; without one it is the last of this directory, or of all.
func FindOrLast(ctx context.Context, r *app.App, name string, all bool) (p.ConversationID, error) {
	if name != "" {
		return app.Find(ctx, r.Engine, name)
	}
	o := engine.ListOptions{Limit: 1}
	if !all {
		o.Cwd = r.Cwd
	}
	for s, err := range app.All(ctx, r.Engine, o) {
		if err != nil {
			return "", err
		}
		if s.Unreadable == "" {
			return s.ID, nil
		}
	}
	return "", &ExitError{
		Code: ExitFailed, Err: fmt.Errorf("there is no conversation in %s", r.Cwd),
		Hint: "use --last --all for the last one in any directory",
	}
}

// TakesLast lets a command whose first argument is an ID take --last instead.
func TakesLast(cmd *cobra.Command) *cobra.Command {
	var last bool
	cmd.Flags().BoolVar(&last, "last", false, "instead of ID: the conversation that was changed last in this directory")
	cmd.Use = strings.Replace(strings.Replace(cmd.Use, "ID", "ID|--last", 1), "--last...", "--last [ID...]", 1)
	check, run := cmd.Args, cmd.RunE
	cmd.Args = func(c *cobra.Command, a []string) error {
		if last {
			a = append([]string{"ID"}, a...)
		}
		return check(c, a)
	}
	cmd.RunE = func(c *cobra.Command, a []string) error {
		if last {
			id, err := LastHere(c.Context())
			if err != nil {
				return err
			}
			a = append([]string{string(id)}, a...)
		}
		return run(c, a)
	}
	return cmd
}

// LastHere is the conversation that was changed last in the working directory.
func LastHere(ctx context.Context) (p.ConversationID, error) {
	dir, err := app.Workdir("")
	if err != nil {
		return "", err
	}
	e, err := app.OpenStore(ctx, Version())
	if err != nil {
		return "", err
	}
	page, err := e.List(ctx, engine.ListOptions{Limit: 1, Cwd: dir})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", &ExitError{Code: ExitFailed, Err: fmt.Errorf("there is no conversation in %s", dir), Hint: "see fermata list"}
	}
	return page.Items[0].ID, nil
}

// completionMax is how many conversations a shell is offered.
const completionMax = 50

// CompleteIDs offers conversations, those changed last first, as the first argument.
func CompleteIDs(archived bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		e, err := app.OpenStore(cmd.Context(), Version())
		if err != nil || len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		page, err := e.List(cmd.Context(), engine.ListOptions{Limit: completionMax, Archived: archived})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []cobra.Completion
		for _, c := range page.Items {
			list = append(list, cobra.CompletionWithDesc(string(c.ID), c.Title))
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
