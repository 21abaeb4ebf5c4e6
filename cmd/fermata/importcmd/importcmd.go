// Package importcmd is the command fermata import: it lists, checks and imports the conversations of other agents.
package importcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/foreign"
)

// options are the flags of the command.
type options struct {
	all, dryRun, asJSON, check, branches bool
	since                                string
}

// Command returns fermata import.
func Command(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "import AGENT [PATH | ID...]",
		Short: "Import conversations of Codex, Claude Code, opencode or Gemini CLI",
		Long: "Import conversations of another agent: codex, claude, opencode or gemini. Without an ID or --all it lists what is there. PATH is the\n" +
			"agent's own directory, if it is not where that agent keeps it, or the file of one conversation.\n\n" +
			"The originals are only read. Importing again adds what is new: a conversation that was continued here is left alone, and what has\n" +
			"been added to the original since becomes a conversation beside it. What cannot be read is reported, and the rest is imported.",
		Example:   "  fermata import codex\n  fermata import claude --all --since 30d\n  fermata import --check opencode",
		ValidArgs: []string{"codex", "claude", "opencode", "gemini"},
		Args:      cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stopped := cli.StopSignals(cmd.Context())
			err := run(ctx, s, o, args)
			return cli.StoppedBy(stopped(), err)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "import all conversations that are listed")
	cmd.Flags().StringVar(&o.since, "since", "", "only those changed since `TIME`: a date, or an age such as 30d or 12h")
	cmd.Flags().BoolVar(&o.branches, "branches", false, "import abandoned branches as conversations, too")
	cmd.Flags().BoolVar(&o.check, "check", false, "report what is damaged in the originals, and import nothing")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "report what would be imported, and import nothing")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object per line")
	return cmd
}

// contradiction returns an error if one flag would make another one do nothing.
func (o options) contradiction() error {
	for _, c := range []struct {
		flags  bool
		reason string
	}{
		{o.check && o.all, "--check looks at all conversations; leave --all out"},
		{o.check && o.dryRun, "--check imports nothing; leave --dry-run out"},
		{o.check && o.branches, "--branches cannot be used with --check"},
		{o.dryRun && o.branches, "--branches cannot be used with --dry-run"},
	} {
		if c.flags {
			return cli.Usagef("import: %s", c.reason)
		}
	}
	return nil
}

func run(ctx context.Context, s cli.Streams, o options, args []string) error {
	agent := foreign.Agent(args[0])
	if !slices.Contains(foreign.Agents, agent) {
		return cli.Usagef("import: %q is not an agent that is known here: codex, claude, opencode or gemini", args[0])
	}
	if err := o.contradiction(); err != nil {
		return err
	}
	since, err := parseSince(o.since, time.Now())
	if err != nil {
		return err
	}
	im, scratch, err := imports.Open(ctx, cli.Version())
	if err != nil {
		return err
	}
	home, ids, err := findHome(agent, args[1:])
	if err != nil {
		return err
	}
	switch named := len(ids) > 0; {
	case o.all && named:
		return cli.Usagef("import: --all cannot be used with an ID or the file of one conversation")
	case o.since != "" && named:
		return cli.Usagef("import: --since cannot be used with an ID or the file of one conversation")
	case (o.dryRun || o.branches) && !o.all && !named:
		return cli.Usagef("import: --dry-run and --branches need --all or an ID")
	}
	home.Scratch = scratch
	defer home.Close()
	list, err := home.List(ctx)
	if err != nil {
		return err
	}
	chosen, err := choose(list, ids, since)
	if err != nil {
		return err
	}
	w := &work{Streams: s, options: o, im: im, home: home, list: list}
	switch {
	case o.check:
		return w.check(ctx, chosen)
	case o.all || len(ids) > 0:
		return w.importAll(ctx, chosen)
	}
	return w.show(ctx, chosen)
}

// findHome returns the home of an agent, and the ids that the arguments name. The first argument may be a path.
func findHome(agent foreign.Agent, args []string) (*foreign.Home, []string, error) {
	if len(args) > 0 && (strings.ContainsRune(args[0], filepath.Separator) || isDir(args[0])) {
		st, err := os.Stat(args[0])
		if err != nil {
			return nil, nil, cli.Usagef("import: %v", err)
		}
		path, err := filepath.Abs(args[0])
		if err != nil {
			return nil, nil, err
		}
		if st.IsDir() {
			return &foreign.Home{Agent: agent, Dir: path}, args[1:], nil
		}
		h := &foreign.Home{Agent: agent, File: path}
		if known, err := foreign.FindHome(agent, os.Getenv); err == nil {
			h.Dir = known.Dir // what the file begins with may be there
		}
		return h, append([]string{""}, args[1:]...), nil
	}
	h, err := foreign.FindHome(agent, os.Getenv)
	return h, args, err
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// parseSince reads a date or an age.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		if _, err := fmt.Sscanf(days+"\n", "%d\n", &n); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, cli.Usagef("import: --since %q is neither a date such as 2026-01-31 nor an age such as 30d or 12h", s)
}

// choose returns the sessions that ids name, all if there are none, and of them those that changed since a time.
func choose(list []foreign.Session, ids []string, since time.Time) ([]foreign.Session, error) {
	var chosen []foreign.Session
	for _, id := range ids {
		found := slices.DeleteFunc(slices.Clone(list), func(s foreign.Session) bool { return !strings.HasPrefix(s.ID, id) })
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("import: %w: %s", foreign.ErrNoSession, id)
		case len(found) > 1 && found[0].ID != id && id != "":
			return nil, cli.Usagef("import: %q is the beginning of %d ids: write more of it", id, len(found))
		case id != "":
			found = found[:1]
		}
		chosen = append(chosen, found...)
	}
	if len(ids) == 0 {
		chosen = list
	}
	return slices.DeleteFunc(slices.Clone(chosen), func(s foreign.Session) bool { return s.Modified.Before(since) }), nil
}

// work is one run of the command.
type work struct {
	cli.Streams
	options
	im   *imports.Importer
	home *foreign.Home
	list []foreign.Session
}
