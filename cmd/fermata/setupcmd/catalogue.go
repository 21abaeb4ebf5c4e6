package setupcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/refresh"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
)

func modelsCommand(o Options) *cobra.Command {
	var from, provider string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models [FILTER...]",
		Short: "List known models with their limits and prices",
		Long: `List known models with their limits and prices. Each FILTER is a text that the name has to contain.

--refresh reads a newer list from a file or URL, checks it and saves it in the home directory; --refresh=builtin
returns to the built-in list.`,
		Example: "  fermata models gpt-5\n  fermata models --provider anthropic --json",
		RunE: func(cmd *cobra.Command, filters []string) error {
			home, err := config.Home(os.Getenv)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("refresh") {
				if len(filters) > 0 || asJSON || cmd.Flags().Changed("provider") {
					return cli.Usagef("models: --refresh lists nothing: it takes no FILTER, --provider or --json")
				}
				file, n, err := refresh.Models(cmd.Context(), home, from)
				switch {
				case errors.Is(err, refresh.ErrNoSource):
					return cli.Usagef("models: %w", err)
				case err != nil:
					return err
				case from == refresh.Builtin:
					fmt.Fprintln(o.Err, "using the built-in list of models")
				default:
					fmt.Fprintf(o.Err, "saved %s in %s\n", humanize.Count(n, "model"), file)
				}
				return nil
			}
			return listModels(o, catalogue.Open(home), provider, filters, asJSON)
		},
	}
	cmd.Flags().StringVar(&from, "refresh", "", "read a newer list from `SOURCE`: a file, a URL, or \"builtin\"")
	cmd.Flags().StringVar(&provider, "provider", "", "only models of provider `NAME`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	return cmd
}

func listModels(o Options, c *catalogue.Catalogue, provider string, filters []string, asJSON bool) error {
	if err := c.Err(); err != nil {
		fmt.Fprintf(o.Err, "fermata: warning: %v; using the built-in list\n", err)
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	n := 0
	for m := range c.All() {
		name := strings.ToLower(m.Provider + "/" + m.ID)
		if provider != "" && m.Provider != provider || slices.ContainsFunc(filters, func(f string) bool { return !strings.Contains(name, strings.ToLower(f)) }) {
			continue
		}
		if asJSON {
			if err := json.NewEncoder(o.Out).Encode(modelLine(m)); err != nil {
				return err
			}
			n++
			continue
		}
		if n++; n == 1 {
			fmt.Fprintln(w, "MODEL\tWINDOW\tOUTPUT\tEFFORTS\tIMAGES\t$/M IN\t$/M OUT\tRELEASED")
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Provider, m.ID, Tokens(m.Window()), Tokens(m.OutputLimit),
			dash(strings.Join(m.Efforts, " ")), yesNo(m.Vision), price(m.Price, m.Price.Input), price(m.Price, m.Price.Output), dash(m.Released))
	}
	if n == 0 && !asJSON {
		text := "no known model matches"
		if near := nearestModel(c, filters); near != "" {
			text += "; did you mean " + near + "?"
		}
		fmt.Fprintln(o.Err, text)
	}
	return w.Flush()
}

// nearestModel is the model that the user meant who looked for one by name.
func nearestModel(c *catalogue.Catalogue, names []string) string {
	var known []string
	for m := range c.All() {
		known = append(known, m.ID)
	}
	for _, name := range names {
		if near := humanize.Nearest(name, known); near != "" {
			return near
		}
	}
	return ""
}

// modelLine is a model as JSON.
func modelLine(m catalogue.Model) map[string]any {
	line := map[string]any{
		"provider": m.Provider, "id": m.ID, "window": m.Window(), "context": m.Context, "output_limit": m.OutputLimit,
		"reasoning": m.Reasoning, "efforts": m.Efforts, "default_effort": m.DefaultEffort(), "vision": m.Vision, "released": m.Released,
		"edit_tool": catalogue.FamilyOf(m.ID).Edit,
	}
	if m.Price.Known {
		line["price_per_million"] = map[string]float64{
			"input": m.Price.Input, "output": m.Price.Output, "cache_read": m.Price.CacheRead, "cache_write": m.Price.CacheWrite,
		}
	}
	return line
}

// Tokens is a number of tokens, in short.
func Tokens(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n%1000 == 0:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func price(p catalogue.Price, v float64) string {
	if !p.Known {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
