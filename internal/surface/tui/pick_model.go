package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/surface/tui/models"
	"github.com/fermata-agent/fermata/internal/surface/tui/picker"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// listModels is the command that finds the models; then gets them.
func (m *model) listModels(then func([]models.Row, error) tea.Cmd) tea.Cmd {
	ctx, list, home := m.ctx, m.o.Models, ""
	if m.o.Config != nil {
		home = m.o.Config.Home
	}
	return func() tea.Msg {
		rows, err := list(ctx)
		found := models.Rows(rows, catalogue.Open(home))
		return answer{func() tea.Cmd { return then(found, err) }}
	}
}

// pickModel lets the person choose a model.
func (m *model) pickModel() tea.Cmd {
	if m.o.Models == nil {
		return m.showError(fmt.Errorf("models cannot be listed here; use /model NAME"))
	}
	s := &pick{Model: picker.New(m.theme, picker.Options{
		Title: "Model for the next turns",
		Columns: []picker.Column{
			{Title: "model", Min: 20},
			{Title: "provider", Width: 12},
			{Title: "window", Width: 7, Drop: 4},
			{Title: "$ per M in / out", Width: 16, Drop: 3},
			{Title: "efforts", Width: 24, Drop: 2},
			{Title: "", Min: 10, Drop: 1},
		},
		Empty: "No model was found.",
	})}
	var found []models.Row
	s.done = func(id string) tea.Cmd {
		for i := range found {
			if fmt.Sprint(i) == id {
				return m.configure(p.Overrides{Provider: &found[i].Provider, Model: &found[i].Model}, "the model is "+found[i].Model)
			}
		}
		return nil
	}
	s.SetLoading(true)
	m.screen = s
	return m.listModels(func(list []models.Row, err error) tea.Cmd {
		s.SetLoading(false)
		if err != nil {
			s.SetNote(err.Error())
		}
		now := m.settings()
		found = models.With(list, now.Provider, now.Model)
		var rows []picker.Row
		for i, row := range found {
			rows = append(rows, picker.Row{ID: fmt.Sprint(i), Columns: row.Columns(), Marked: row.Is(now.Provider, now.Model)})
		}
		s.SetRows(rows)
		return nil
	})
}

// chooseModel sets the model by its name, and how much it reasons. A name that is not
// known is set all the same, as services have models that no list has; but that is shown.
func (m *model) chooseModel(args string) tea.Cmd {
	name, effort, _ := strings.Cut(args, " ")
	effort = strings.TrimSpace(effort)
	switch {
	case name == "":
		return m.pickModel()
	case m.o.Models == nil:
		return m.setModel(p.Overrides{Model: &name}, effort, "")
	}
	return m.listModels(func(list []models.Row, _ error) tea.Cmd {
		provider, id, ok := strings.Cut(name, "/")
		over, now := p.Overrides{Model: &name}, m.settings()
		at := slices.IndexFunc(list, func(r models.Row) bool { return r.Model == name && r.Provider == now.Provider })
		if at < 0 {
			at = slices.IndexFunc(list, func(r models.Row) bool { return r.Model == name || ok && r.Provider == provider && r.Model == id })
		}
		if at < 0 && effort != "" && !slices.Contains(config.Efforts, effort) {
			return m.noEffort(name, effort, config.Efforts)
		}
		if at < 0 {
			return m.setModel(over, effort, "; it is not in the catalogue"+models.Nearest(name, list))
		}
		row := list[at]
		over = p.Overrides{Provider: &row.Provider, Model: &row.Model}
		if known := row.Facts.Efforts; effort != "" && len(known) > 0 && !slices.Contains(known, effort) {
			return m.noEffort(row.Model, effort, known)
		}
		return m.setModel(over, effort, "")
	})
}

func (m *model) setModel(over p.Overrides, effort, remark string) tea.Cmd {
	done := "the model is " + *over.Model
	if effort != "" {
		over.Effort = &effort
		done += ", with effort " + effort
	}
	return m.configure(over, done+remark)
}

// effort sets how much the model reasons.
func (m *model) effort(args string) tea.Cmd {
	now := m.settings()
	if m.o.Models == nil && args == "" {
		return m.hintf(theme.Accent, "the effort is %s", now.Effort)
	}
	if m.o.Models == nil {
		return m.configure(p.Overrides{Effort: &args}, "the effort is "+args)
	}
	return m.listModels(func(list []models.Row, _ error) tea.Cmd {
		var known []string
		for _, r := range list {
			if r.Model == now.Model && r.Provider == now.Provider {
				known = r.Facts.Efforts
			}
		}
		switch {
		case args == "" && len(known) == 0:
			return m.hintf(theme.Accent, "the efforts of %s are not known; /effort NAME sets one", now.Model)
		case args == "":
			return m.pickEffort(known)
		}
		if len(known) == 0 {
			known = config.Efforts
		}
		if !slices.Contains(known, args) {
			return m.noEffort(now.Model, args, known)
		}
		return m.configure(p.Overrides{Effort: &args}, "the effort is "+args)
	})
}

// noEffort says which efforts there are.
func (m *model) noEffort(model, effort string, known []string) tea.Cmd {
	return m.hintf(theme.Warn, "%s has no effort %q: use %s", model, effort, strings.Join(known, ", "))
}

func (m *model) pickEffort(known []string) tea.Cmd {
	s := &pick{Model: picker.New(m.theme, picker.Options{Title: "How much the model reasons in the next turns", Columns: []picker.Column{{Title: "effort", Min: 12}}})}
	now := m.settings().Effort
	var rows []picker.Row
	for _, name := range known {
		rows = append(rows, picker.Row{ID: name, Columns: []string{name}, Marked: name == now})
	}
	s.SetRows(rows)
	s.done = func(id string) tea.Cmd { return m.configure(p.Overrides{Effort: &id}, "the effort is "+id) }
	m.screen = s
	return nil
}
