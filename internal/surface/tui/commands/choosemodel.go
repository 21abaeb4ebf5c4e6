package commands

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// findModels is the command that finds the models, and calls then with them.
func (s Set) findModels(then func([]modelRow, error) tea.Cmd) tea.Cmd {
	ctx, home := s.Context(), ""
	if s.Config != nil {
		home = s.Config.Home // where a newer catalogue may be
	}
	return terminal.Do(func() func() tea.Cmd {
		rows, err := s.Models(ctx)
		found := rowsOf(rows, catalogue.Open(home))
		return func() tea.Cmd { return then(found, err) }
	})
}

// pickModel lets the user choose a model.
func (s Set) pickModel() tea.Cmd {
	if s.Models == nil {
		return s.ShowError(fmt.Errorf("models cannot be listed here; use /model NAME"))
	}
	list := dialog.NewPicker(s.Theme(), dialog.PickerOptions{
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
	list.SetLoading(true)
	s.Pick(list)
	return s.findModels(func(all []modelRow, err error) tea.Cmd {
		list.SetLoading(false)
		if err != nil {
			list.SetNote(err.Error())
		}
		now := s.Settings()
		var rows []dialog.Row
		for i, row := range with(all, now.Provider, now.Model) {
			rows = append(rows, dialog.Row{
				ID: fmt.Sprint(i), Columns: row.columns(), Marked: row.is(now.Provider, now.Model),
				Choose: func() tea.Cmd { return s.setModel(p.Overrides{Provider: &row.Provider, Model: &row.Model}, "", "") },
			})
		}
		list.SetRows(rows)
		return nil
	})
}

// Model sets the model by its name, and how much it reasons; without a name the user picks one. A name that
// is not known is set all the same, as services have models that no list has; but that is shown.
func (s Set) Model(args string) tea.Cmd {
	name, effort, _ := strings.Cut(args, " ")
	effort = strings.TrimSpace(effort)
	switch {
	case name == "":
		return s.pickModel()
	case s.Models == nil:
		return s.setModel(p.Overrides{Model: &name}, effort, "")
	}
	return s.findModels(func(list []modelRow, _ error) tea.Cmd {
		row, ok := named(list, name, s.Settings().Provider)
		if !ok && effort != "" && !slices.Contains(config.Efforts, effort) {
			return s.noEffort(name, effort, config.Efforts)
		}
		if !ok {
			return s.setModel(p.Overrides{Model: &name}, effort, "; it is not in the catalogue"+nearest(name, list))
		}
		if known := row.Facts.Efforts; effort != "" && len(known) > 0 && !slices.Contains(known, effort) {
			return s.noEffort(row.Model, effort, known)
		}
		return s.setModel(p.Overrides{Provider: &row.Provider, Model: &row.Model}, effort, "")
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

func (s Set) setModel(change p.Overrides, effort, remark string) tea.Cmd {
	done := "the model is " + *change.Model
	if effort != "" {
		change.Effort = &effort
		done += ", with effort " + effort
	}
	return s.Configure(change, done+remark)
}

// Effort sets how much the model reasons.
func (s Set) Effort(name string) tea.Cmd {
	now := s.Settings()
	if s.Models == nil && name == "" {
		return s.Hint(theme.Accent, "the effort is %s", now.Effort)
	}
	if s.Models == nil {
		return s.setEffort(name)
	}
	return s.findModels(func(list []modelRow, _ error) tea.Cmd {
		var known []string
		for _, r := range list {
			if r.is(now.Provider, now.Model) {
				known = r.Facts.Efforts
			}
		}
		switch {
		case name == "" && len(known) == 0:
			return s.Hint(theme.Accent, "the efforts of %s are not known; /effort NAME sets one", now.Model)
		case name == "":
			s.pickEffort(known)
			return nil
		}
		if len(known) == 0 {
			known = config.Efforts
		}
		if !slices.Contains(known, name) {
			return s.noEffort(now.Model, name, known)
		}
		return s.setEffort(name)
	})
}

func (s Set) setEffort(name string) tea.Cmd {
	return s.Configure(p.Overrides{Effort: &name}, "the effort is "+name)
}

// noEffort says which efforts there are.
func (s Set) noEffort(model, effort string, known []string) tea.Cmd {
	return s.Hint(theme.Warn, "%s has no effort %q: use %s", model, effort, strings.Join(known, ", "))
}

func (s Set) pickEffort(known []string) {
	list := dialog.NewPicker(s.Theme(), dialog.PickerOptions{Title: "How much the model reasons in the next turns", Columns: []dialog.Column{{Title: "effort", Min: 12}}})
	now := s.Settings().Effort
	var rows []dialog.Row
	for _, name := range known {
		rows = append(rows, dialog.Row{ID: name, Columns: []string{name}, Marked: name == now, Choose: func() tea.Cmd { return s.setEffort(name) }})
	}
	list.SetRows(rows)
	s.Pick(list)
}
