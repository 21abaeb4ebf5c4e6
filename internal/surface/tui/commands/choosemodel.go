package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// Models sets the model and its effort.
type Models struct {
	Host
	List func(context.Context) ([]app.ModelRow, error) // the models that could be used now; nil if that is not known
	Home string                                        // where a newer catalogue may be
}

// find is the command that finds the models; then gets them.
func (c Models) find(then func([]modelRow, error) tea.Cmd) tea.Cmd {
	ctx := c.Context()
	return terminal.Do(func() func() tea.Cmd {
		rows, err := c.List(ctx)
		found := rowsOf(rows, catalogue.Open(c.Home))
		return func() tea.Cmd { return then(found, err) }
	})
}

// pick lets the person choose a model.
func (c Models) pick() tea.Cmd {
	if c.List == nil {
		return c.ShowError(fmt.Errorf("models cannot be listed here; use /model NAME"))
	}
	list := dialog.NewPicker(c.Theme(), dialog.PickerOptions{
		Title: "Model for the next turns",
		Columns: []dialog.Column{
			{Title: "model", Min: 20},
			{Title: "provider", Width: 12},
			{Title: "window", Width: 7, Drop: 4},
			{Title: "$ per M in / out", Width: 16, Drop: 3},
			{Title: "efforts", Width: 24, Drop: 2},
			{Title: "", Min: 10, Drop: 1},
		},
		Empty: "No model was found.",
	})
	var found []modelRow
	list.SetLoading(true)
	c.Pick(list, func(id string) tea.Cmd {
		for i := range found {
			if fmt.Sprint(i) == id {
				return c.set(p.Overrides{Provider: &found[i].Provider, Model: &found[i].Model}, "", "")
			}
		}
		return nil
	})
	return c.find(func(all []modelRow, err error) tea.Cmd {
		list.SetLoading(false)
		if err != nil {
			list.SetNote(err.Error())
		}
		now := c.Settings()
		found = with(all, now.Provider, now.Model)
		var rows []dialog.Row
		for i, row := range found {
			rows = append(rows, dialog.Row{ID: fmt.Sprint(i), Columns: row.columns(), Marked: row.is(now.Provider, now.Model)})
		}
		list.SetRows(rows)
		return nil
	})
}

// Model sets the model by its name, and how much it reasons; without a name the person picks one. A name that
// is not known is set all the same, as services have models that no list has; but that is shown.
func (c Models) Model(args string) tea.Cmd {
	name, effort, _ := strings.Cut(args, " ")
	effort = strings.TrimSpace(effort)
	switch {
	case name == "":
		return c.pick()
	case c.List == nil:
		return c.set(p.Overrides{Model: &name}, effort, "")
	}
	return c.find(func(list []modelRow, _ error) tea.Cmd {
		row, ok := named(list, name, c.Settings().Provider)
		if !ok && effort != "" && !slices.Contains(config.Efforts, effort) {
			return c.noEffort(name, effort, config.Efforts)
		}
		if !ok {
			return c.set(p.Overrides{Model: &name}, effort, "; it is not in the catalogue"+nearest(name, list))
		}
		if known := row.Facts.Efforts; effort != "" && len(known) > 0 && !slices.Contains(known, effort) {
			return c.noEffort(row.Model, effort, known)
		}
		return c.set(p.Overrides{Provider: &row.Provider, Model: &row.Model}, effort, "")
	})
}

// named finds a model by its name, or by provider/name: first among those of the provider in use.
func named(list []modelRow, name, inUse string) (modelRow, bool) {
	provider, id, ok := strings.Cut(name, "/")
	at := slices.IndexFunc(list, func(r modelRow) bool { return r.is(inUse, name) })
	if at < 0 {
		at = slices.IndexFunc(list, func(r modelRow) bool { return r.Model == name || ok && r.is(provider, id) })
	}
	if at < 0 {
		return modelRow{}, false
	}
	return list[at], true
}

func (c Models) set(change p.Overrides, effort, remark string) tea.Cmd {
	done := "the model is " + *change.Model
	if effort != "" {
		change.Effort = &effort
		done += ", with effort " + effort
	}
	return c.Configure(change, done+remark)
}

// Effort sets how much the model reasons.
func (c Models) Effort(name string) tea.Cmd {
	now := c.Settings()
	if c.List == nil && name == "" {
		return c.Hint(theme.Accent, "the effort is %s", now.Effort)
	}
	if c.List == nil {
		return c.setEffort(name)
	}
	return c.find(func(list []modelRow, _ error) tea.Cmd {
		var known []string
		for _, r := range list {
			if r.is(now.Provider, now.Model) {
				known = r.Facts.Efforts
			}
		}
		switch {
		case name == "" && len(known) == 0:
			return c.Hint(theme.Accent, "the efforts of %s are not known; /effort NAME sets one", now.Model)
		case name == "":
			c.pickEffort(known)
			return nil
		}
		if len(known) == 0 {
			known = config.Efforts
		}
		if !slices.Contains(known, name) {
			return c.noEffort(now.Model, name, known)
		}
		return c.setEffort(name)
	})
}

func (c Models) setEffort(name string) tea.Cmd {
	return c.Configure(p.Overrides{Effort: &name}, "the effort is "+name)
}

// noEffort says which efforts there are.
func (c Models) noEffort(model, effort string, known []string) tea.Cmd {
	return c.Hint(theme.Warn, "%s has no effort %q: use %s", model, effort, strings.Join(known, ", "))
}

func (c Models) pickEffort(known []string) {
	list := dialog.NewPicker(c.Theme(), dialog.PickerOptions{Title: "How much the model reasons in the next turns", Columns: []dialog.Column{{Title: "effort", Min: 12}}})
	now := c.Settings().Effort
	var rows []dialog.Row
	for _, name := range known {
		rows = append(rows, dialog.Row{ID: name, Columns: []string{name}, Marked: name == now})
	}
	list.SetRows(rows)
	c.Pick(list, c.setEffort)
}
