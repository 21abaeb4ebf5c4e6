// Package managecmd holds the commands that manage conversations, whichever process runs them: list, show,
// undo, ps, kill, send, returned, interrupt, stop, rename, archive, delete and fsck.
package managecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/setupcmd"
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
)

// Commands returns the commands.
func Commands(s cli.Streams) []*cobra.Command {
	last := cli.TakesLast
	return []*cobra.Command{
		listCommand(s), last(showCommand(s)), last(undoCommand(s)), last(psCommand(s)), last(killCommand(s)), last(renameCommand(s)),
		last(archiveCommand(s)), unarchiveCommand(s), last(deleteCommand(s)), fsckCommand(s),
		last(sendCommand(s)), last(returnedCommand(s)), last(interruptCommand(s)), stopCommand(s),
	}
}

func listCommand(s cli.Streams) *cobra.Command {
	var o engine.ListOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List conversations, the most recent first",
		Long: "List conversations, the most recent first: their state, what they used and cost, their directory and title.\n" +
			"\"returned\" counts messages that were not delivered: fermata returned ID lists them.",
		Example: "  fermata list\n  fermata list --cwd . -n 5",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Limit < 0 {
				return cli.Usagef("list: -n must not be negative")
			}
			if cmd.Flags().Changed("cwd") {
				dir, err := listedDir(o.Cwd)
				if err != nil {
					return err
				}
				o.Cwd = dir
			}
			e, err := app.OpenStore(cmd.Context(), cli.Version())
			if err != nil {
				return err
			}
			home, err := config.Home(os.Getenv)
			if err != nil {
				return err
			}
			return list(cmd.Context(), e.Local, s, o, catalogue.Open(home), asJSON)
		},
	}
	cmd.Flags().IntVarP(&o.Limit, "limit", "n", 25, "show at most `N`; 0 shows all")
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "only conversations of `DIR`")
	cmd.Flags().BoolVar(&o.Archived, "archived", false, "list archived conversations instead")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	return cmd
}

// listedDir is the directory whose conversations are listed, as they have it. It may have been removed since.
func listedDir(dir string) (string, error) {
	if dir == "" {
		return "", cli.Usagef("list: --cwd is empty: name a directory")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil
}

func list(ctx context.Context, e *engine.Local, s cli.Streams, o engine.ListOptions, models *catalogue.Catalogue, asJSON bool) error {
	t := table{width: cli.Columns(s.RawOut), rows: [][]string{{"ID", "AGE", "STATE", "USED", "DIRECTORY", "TITLE"}}}
	warn := func(unread string) { fmt.Fprintf(s.Err, "fermata: %s\n", unread) }
	show := func(sum engine.Summary) error {
		used, dollars := took(models, sum)
		if asJSON {
			return json.NewEncoder(s.Out).Encode(struct {
				engine.Summary
				Cost *float64 `json:"cost_usd,omitempty"` // if the price is known
			}{sum, dollars})
		}
		t.rows = append(t.rows, []string{string(sum.ID), age(time.Since(sum.Updated)), ending(sum), used, app.Tilde(sum.Cwd), sum.Title})
		return nil
	}
	total, err := eachListed(ctx, e, o, warn, show)
	if err != nil {
		return err
	}
	if total == 0 {
		return reportNone(s, o, asJSON)
	}
	if asJSON {
		return nil
	}
	if err := t.print(s.Out); err != nil {
		return err
	}
	if o.Limit > 0 && total > o.Limit {
		fmt.Fprintf(s.Err, "%d of %d conversations; -n 0 shows all\n", o.Limit, total)
	}
	return nil
}

// eachListed calls show for each conversation that o asks for, and returns how many there are without its limit. Only for those of
// one directory, where all have to be read to know it, does it look further than one page.
func eachListed(ctx context.Context, e *engine.Local, o engine.ListOptions, warn func(string), show func(engine.Summary) error) (total int, err error) {
	limit := o.Limit
	if limit > 0 && o.Cwd == "" {
		page, err := e.List(ctx, o)
		for _, line := range page.Unread {
			warn(line)
		}
		for _, sum := range page.Items {
			err = errors.Join(err, show(sum))
		}
		if page.Next == "" {
			return len(page.Items), err // one that was deleted meanwhile does not count
		}
		return page.Total, err
	}
	for sum, err := range app.AllBut(ctx, e, o, warn) {
		if err != nil {
			return total, err
		}
		if total++; limit > 0 && total > limit {
			continue
		}
		if err := show(sum); err != nil {
			return total, err
		}
	}
	return total, nil
}

// reportNone says that there is nothing to list; to a program, only if the directory is wrong.
func reportNone(s cli.Streams, o engine.ListOptions, asJSON bool) error {
	if _, err := os.Stat(o.Cwd); o.Cwd != "" && err != nil {
		return cli.Usagef("list: --cwd: there is no directory %s, and no conversation was begun in it", o.Cwd)
	}
	if asJSON {
		return nil
	}
	text := "no conversations"
	if o.Archived {
		text = "no archived conversations"
	}
	if o.Cwd != "" {
		text += " in " + app.Tilde(o.Cwd)
	} else if !o.Archived {
		text += " yet"
	}
	_, err := fmt.Fprintln(s.Err, text)
	return err
}

func ending(s engine.Summary) string {
	state := string(s.Ended)
	switch {
	case s.Unreadable != "":
		return "unreadable"
	case s.Turns == 0:
		state = "new"
	case s.Ended == "":
		state = "open"
	}
	if s.Returned > 0 {
		state += fmt.Sprintf(", %d returned", s.Returned)
	}
	return state
}

// took says what a conversation has taken, and returns what that costs at the price of its
// model. Either may be unknown.
func took(models *catalogue.Catalogue, s engine.Summary) (string, *float64) {
	if s.Usage == nil {
		return "", nil
	}
	text := setupcmd.Tokens(s.Usage.Total) + " tokens"
	if m, ok := models.Find(s.Provider, s.Model); ok {
		if dollars, ok := m.Cost(*s.Usage); ok {
			return fmt.Sprintf("%s, $%.2f", text, dollars), &dollars
		}
	}
	return text, nil
}
