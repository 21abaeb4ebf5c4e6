package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
)

// A modelRow is a model that can be chosen, with what the catalogue says of it.
type modelRow struct {
	app.ModelRow
	Facts catalogue.Model // empty if the catalogue does not know it
}

// rowsOf lists what can be chosen: of each usable service the model that would be
// used, then what the catalogue has, the newest first.
func rowsOf(rows []app.ModelRow, c *catalogue.Catalogue) []modelRow {
	table := slices.Collect(c.All())
	slices.SortStableFunc(table, func(a, b catalogue.Model) int { return strings.Compare(b.Released, a.Released) })
	var list []modelRow
	for i, row := range rows {
		k := modelRow{ModelRow: row}
		var more []modelRow
		last := i == len(rows)-1 || rows[i+1].Provider != row.Provider
		for _, m := range table {
			switch {
			case m.Provider != row.Provider:
			case m.ID == row.Model:
				k.Facts = m
			case last && !slices.ContainsFunc(rows, func(r app.ModelRow) bool { return r.Provider == m.Provider && r.Model == m.ID }):
				more = append(more, modelRow{app.ModelRow{Provider: m.Provider, Model: m.ID, Note: row.Note}, m})
			}
		}
		list = append(append(list, k), more...)
	}
	return list
}

// with returns the list with a model in front that is in use, if it does not have it: one that was set by a name
// that no service lists, for example.
func with(list []modelRow, provider, model string) []modelRow {
	if model == "" || slices.ContainsFunc(list, func(r modelRow) bool { return r.is(provider, model) }) {
		return list
	}
	return slices.Insert(slices.Clone(list), 0, modelRow{ModelRow: app.ModelRow{Provider: provider, Model: model, Note: "in use"}})
}

// is reports whether the row is a model of a provider.
func (r modelRow) is(provider, model string) bool { return r.Provider == provider && r.Model == model }

// columns say what it can hold, and what it costs.
func (r modelRow) columns() []string {
	window, price := "", ""
	if w := r.Facts.Window(); w > 0 {
		window = screen.Tokens(w)
	}
	if c := r.Facts.Price; c.Known {
		price = fmt.Sprintf("$%g / $%g", c.Input, c.Output)
	}
	return []string{r.Model, r.Provider, window, price, strings.Join(r.Facts.Efforts, " "), r.Note}
}

// nearest suggests what a name that was mistyped stands for.
func nearest(name string, list []modelRow) string {
	var names []string
	for _, r := range list {
		names = append(names, r.Model)
	}
	if best := humanize.Nearest(name, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}
