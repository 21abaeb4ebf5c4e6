package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/humanize"
)

// flagError says what is wrong with a flag in our own words.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var value *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &missing):
		name := "--" + missing.GetSpecifiedName()
		if missing.GetSpecifiedShortnames() != "" {
			name = name[1:]
		}
		what, _ := pflag.UnquoteUsage(missing.GetFlag())
		return cli.Usagef("%s needs a value: %s %s", name, name, what)
	case errors.As(err, &value):
		return wrongValue(value)
	case errors.As(err, &syntax):
		return cli.Usagef("%q is not a flag", syntax.GetSpecifiedFlag())
	}
	return cli.Usagef("%w", err)
}

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	name, group := e.GetSpecifiedName(), e.GetSpecifiedShortnames()
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	switch {
	case slices.Contains(names, group):
		return cli.Usagef("unknown flag -%s; did you mean --%s?", group, group)
	case group != "" && group[0] >= utf8.RuneSelf: // the name is half a character
		return cli.Usagef("unknown flag -%s", group)
	case group != "":
		return cli.Usagef("unknown flag -%s", name)
	}
	if near := humanize.Nearest(name, names); near != "" {
		return cli.Usagef("unknown flag --%s; did you mean --%s?", name, near)
	}
	return cli.Usagef("unknown flag --%s", name)
}

// wanted says what the value of a flag must be, by its type.
var wanted = map[string]string{"int": "must be a number", "duration": "must be a time such as 90s or 10m", "bool": "takes no value but true or false"}

func wrongValue(e *pflag.InvalidValueError) error {
	flag := e.GetFlag()
	if errors.Is(e, strconv.ErrRange) {
		return cli.Usagef("--%s: %s is too large", flag.Name, e.GetValue())
	}
	if want, ok := wanted[flag.Value.Type()]; ok {
		return cli.Usagef("--%s %s, not %q", flag.Name, want, e.GetValue())
	}
	return cli.Usagef("--%s: %w", flag.Name, e.Unwrap())
}

// checkSubcommands makes commands that have commands of their own report a wrong one, and what was probably meant.
func checkSubcommands(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.HasSubCommands() {
			continue
		}
		checkSubcommands(cmd)
		check := cmd.Args
		if !cmd.Runnable() {
			check = func(cmd *cobra.Command, a []string) error {
				if len(a) > 0 {
					return cli.Usagef("%s has no command %q", cmd.Name(), a[0])
				}
				return nil
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		cmd.Args = func(cmd *cobra.Command, a []string) error {
			err := check(cmd, a)
			if err == nil || len(a) == 0 {
				return err
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			near := humanize.Nearest(a[0], names)
			if near == "" {
				return err
			}
			return &cli.ExitError{
				Code: cli.ExitUsage, Err: fmt.Errorf("%s has no command %q", cmd.Name(), a[0]),
				Hint: fmt.Sprintf("did you mean %s %s?", cmd.CommandPath(), near),
			}
		}
	}
}
