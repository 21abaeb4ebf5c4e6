package setupcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/mcpcmd"
	"github.com/fermata-agent/fermata/cmd/fermata/storecmd"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
)

func doctorCommand(o Options) *cobra.Command {
	var load func() (app.Loaded, error)
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check the configuration and what this machine supports",
		Example: "  fermata doctor",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return doctor(cmd.Context(), o, load)
		},
	}
	load = o.LoadFlags(cmd.Flags())
	return cmd
}

func doctor(ctx context.Context, o Options, load func() (app.Loaded, error)) error {
	var unprinted error // the first error of stdout
	line := func(what, format string, args ...any) {
		if _, err := fmt.Fprintf(o.Out, "%-12s %s\n", what, fmt.Sprintf(format, args...)); unprinted == nil {
			unprinted = err
		}
	}
	line("version", "%s", o.Version)
	l, err := load()
	for _, w := range l.Warnings {
		line(w.Level(), "%v", w)
	}
	if err != nil {
		return err
	}
	cfg := l.Config
	line("home", "%s%s", cfg.Home, writable(cfg.Home))
	storecmd.Doctor(ctx, cfg, line)
	choice, err := l.Models().Choose("")
	if err != nil {
		line("model", "none: %v", err)
	} else {
		line("model", "%s (%s), from %s", choice.Model, choice.Provider.ID, choice.Source)
	}
	if from := keyFrom(l, choice); from != "" {
		line("key", "%s", from)
	}
	dir := l.Options.Cwd
	line("directory", "%s, %s", app.Tilde(dir), trustWord(l.Projects.Trust(dir)))
	line("approval", "%s", cfg.Approval)
	line("sandbox", "%s", cfg.Settings(choice, dir, "").Sandbox.Mode)
	for _, l := range sandbox.Probe().Lines() {
		line("", "%s", l)
	}
	line("", "PID namespace: %s", pidNamespace(cfg))
	if len(cfg.Notify) > 0 {
		line("notify", "%s", runnable(cfg.Notify[0]))
	}
	err = mcpcmd.Doctor(ctx, l, line)
	return errors.Join(unprinted, err)
}

// keyFrom says where the key of a provider comes from; nothing if it needs none.
func keyFrom(l app.Loaded, c config.Choice) string {
	for _, name := range c.Provider.EnvKeys {
		if os.Getenv(name) != "" {
			return "in the environment: " + name
		}
	}
	for _, name := range c.Provider.EnvKeys {
		_, place, err := l.Keys.Get(name)
		switch {
		case err != nil:
			return err.Error()
		case place != "":
			return fmt.Sprintf("saved in %s: %s", place, name)
		}
	}
	return ""
}

func trustWord(t project.Trust) string {
	switch t {
	case project.Trusted:
		return "trusted"
	case project.Untrusted:
		return "not trusted"
	}
	return "not decided whether it is trusted (fermata trust)"
}

// pidNamespace says whether confined commands get one.
func pidNamespace(cfg *config.Config) string {
	switch {
	case !proc.PIDNamespaces():
		return "not available"
	case !cfg.PIDNamespace:
		return "available, switched off"
	}
	return "yes"
}

// runnable says where a program is, or why it cannot be run.
func runnable(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return err.Error()
	}
	return path
}

// writable says what keeps conversations from being kept.
func writable(home string) string {
	if _, err := os.Stat(home); err != nil {
		return " (will be created)"
	}
	f, err := os.CreateTemp(home, ".doctor-")
	if err != nil {
		return fmt.Sprintf(" (not writable: %v)", err)
	}
	_, err = f.Write(make([]byte, 4096)) // a full disk takes an empty file
	err = errors.Join(err, f.Close())
	os.Remove(f.Name())
	if err != nil {
		return fmt.Sprintf(" (not writable: %v)", err)
	}
	return ""
}
