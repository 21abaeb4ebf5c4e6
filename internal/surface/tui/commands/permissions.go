package commands

import (
	"cmp"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// OfferPermission is what a user who is asked about a command or a tool can allow for good, and what
// remembers it. It is empty if there is nothing to offer.
func (s Set) OfferPermission(req *p.ApprovalRequested) (string, func() error) {
	if s.Projects == nil {
		return "", nil
	}
	dir := cmp.Or(req.Cwd, s.Settings().Cwd)
	switch {
	case req.Kind == p.ApproveTool && req.MCP != nil:
		perm := s.Projects.OfferTool(*req.MCP, dir)
		what := "don't ask again for " + safetext.ShowLine(perm.String())
		if perm.Dir != "" {
			what += " in " + s.ShortDir(perm.Dir)
		}
		return what, func() error { return s.Projects.Allow(perm) }
	case req.Kind == p.ApproveCommand:
		if perm, ok := project.Offer(req.Command, dir); ok {
			return fmt.Sprintf("don't ask again for `%s …` in %s", perm, s.ShortDir(perm.Dir)),
				func() error { return s.Projects.Allow(perm) }
		}
	}
	return "", nil
}

// ShowPermissions lists what may run without asking, and revokes it.
func (s Set) ShowPermissions(string) tea.Cmd {
	if s.Projects == nil {
		return s.ShowError(errors.New("permissions are not available here"))
	}
	list := dialog.NewPicker(s.Theme(), dialog.PickerOptions{
		Title:   "Run without asking and outside the sandbox, and rules; Enter revokes one",
		Columns: []dialog.Column{{Title: "command or tool", Min: 20}, {Title: "in", Min: 12, Drop: 1}},
		Empty:   "None: you are asked. The dialog of an approval offers to add one.",
	})
	list.SetLoading(true)
	s.Pick(list)
	dir := s.Settings().Cwd
	return terminal.Do(func() func() tea.Cmd {
		perms, rules := s.Projects.Permissions(dir), s.Projects.FileRules()
		return func() tea.Cmd {
			list.SetLoading(false)
			var rows []dialog.Row
			for i, perm := range perms {
				rows = append(rows, dialog.Row{
					ID: fmt.Sprint(i), Columns: []string{safetext.ShowLine(perm.String()), cmp.Or(s.ShortDir(perm.Dir), "everywhere")},
					Choose: func() tea.Cmd { return s.revoke(perm) },
				})
			}
			for i, rule := range rules {
				rows = append(rows, dialog.Row{
					ID: fmt.Sprint("rule ", i), Columns: []string{safetext.ShowLine(rule.String()), fmt.Sprintf("%s, by rules/*.rules", rule.Decision)},
					Choose: func() tea.Cmd {
						return s.Hint(theme.Warn, "edit rules/*.rules beside the configuration to change that")
					},
				})
			}
			list.SetRows(rows)
			return nil
		}
	})
}

func (s Set) revoke(perm project.Permission) tea.Cmd {
	return terminal.Do(func() func() tea.Cmd {
		err := s.Projects.Revoke(perm)
		return func() tea.Cmd {
			if err != nil {
				return s.ShowError(err)
			}
			return s.Hint(theme.OK, "you are asked again about `%s`", perm)
		}
	})
}

// PickPreset lets the user choose when to be asked, and what the sandbox allows.
func (s Set) PickPreset(string) tea.Cmd {
	list := dialog.NewPicker(s.Theme(), dialog.PickerOptions{
		Title: "Approvals and sandbox for the next turns",
		Columns: []dialog.Column{
			{Title: "", Width: 13},
			{Title: "what it may do", Min: 20},
			{Title: "sandbox", Width: 18, Drop: 1},
			{Title: "asks", Width: 26, Drop: 2},
		},
	})
	now := s.Settings()
	var rows []dialog.Row
	for _, pr := range app.Presets {
		rows = append(rows, dialog.Row{
			ID: pr.Name, Columns: []string{pr.Name, pr.Help, string(pr.Mode), screen.Asks(pr.Approval)}, Marked: pr.In(now),
			Choose: func() tea.Cmd { return s.Configure(pr.Overrides(s.Settings(), s.Config), pr.Name+": "+pr.Help) },
		})
	}
	list.SetRows(rows)
	s.Pick(list)
	return nil
}
