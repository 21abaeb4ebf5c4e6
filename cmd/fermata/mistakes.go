package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// flagError says what is wrong with a flag in our own words.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if len(name) == 1 || unknown.GetSpecifiedShortnames() != "" {
			return usage("unknown flag -%s", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.Suggest(name, names); near != "" {
			return usage("unknown flag --%s; did you mean --%s?", name, near)
		}
		return usage("unknown flag --%s", name)
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "bool":
		return usage("--%s takes no value but true or false, not %q", value.GetFlag().Name, value.GetValue())
	case errors.As(err, &value) && errors.As(err, &number):
		return usage("--%s must be a number, not %q", value.GetFlag().Name, value.GetValue())
	}
	return usage("%w", err)
}

// takesLast lets a command whose first argument is an ID take --last instead.
func takesLast(cmd *cobra.Command) *cobra.Command {
	var last bool
	cmd.Flags().BoolVar(&last, "last", false, "instead of ID: the conversation that was changed last in this directory")
	cmd.Use = strings.Replace(cmd.Use, "ID", "ID|--last", 1)
	check, run := cmd.Args, cmd.RunE
	cmd.Args = func(c *cobra.Command, a []string) error {
		if last {
			a = append([]string{"ID"}, a...)
		}
		return check(c, a)
	}
	cmd.RunE = func(c *cobra.Command, a []string) error {
		if last {
			id, err := lastHere(c.Context())
			if err != nil {
				return err
			}
			a = append([]string{string(id)}, a...)
		}
		return run(c, a)
	}
	return cmd
}

// lastHere is the conversation that was changed last in the working directory.
func lastHere(ctx context.Context) (p.ConversationID, error) {
	dir, err := app.Workdir("")
	if err != nil {
		return "", err
	}
	e, err := app.OpenStore(ctx, version())
	if err != nil {
		return "", err
	}
	page, err := e.List(ctx, engine.ListOptions{Limit: 1, Cwd: dir})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", &exitError{code: exitFailed, err: fmt.Errorf("there is no conversation in %s", dir), hint: "see fermata list"}
	}
	return page.Items[0].ID, nil
}
