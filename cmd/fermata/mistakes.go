package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/config"
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
			return cli.Usagef("unknown flag -%s", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.Suggest(name, names); near != "" {
			return cli.Usagef("unknown flag --%s; did you mean --%s?", name, near)
		}
		return cli.Usagef("unknown flag --%s", name)
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "bool":
		return cli.Usagef("--%s takes no value but true or false, not %q", value.GetFlag().Name, value.GetValue())
	case errors.As(err, &value) && errors.As(err, &number):
		return cli.Usagef("--%s must be a number, not %q", value.GetFlag().Name, value.GetValue())
	}
	return cli.Usagef("%w", err)
}
