package tui

import (
	"cmp"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/picker"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// offer is what a person who is asked about a command or a tool can allow for good, and what
// remembers it.
func (m *model) offer(req *p.ApprovalRequested) (string, func() error) {
	store, dir := m.o.Projects, req.Cwd
	if dir == "" {
		dir = m.settings().Cwd
	}
	if req.Kind == p.ApproveTool && req.MCP != nil {
		perm := store.OfferTool(*req.MCP, dir)
		what := "don't ask again for " + safetext.ShowLine(perm.String())
		if perm.Dir != "" {
			what += " in " + m.shortDir(perm.Dir)
		}
		return what, func() error { return store.Allow(perm) }
	}
	if req.Kind != p.ApproveCommand {
		return "", nil
	}
	perm, ok := project.Offer(req.Command, dir)
	if !ok {
		return "", nil
	}
	return fmt.Sprintf("don't ask again for `%s …` in %s", perm, m.shortDir(perm.Dir)),
		func() error { return store.Allow(perm) }
}

// permissions lists what may run without asking, and revokes it.
func (m *model) permissions(string) tea.Cmd {
	store := m.o.Projects
	if store == nil {
		return m.showError(fmt.Errorf("permissions are not available here"))
	}
	s := &pick{Model: picker.New(m.theme, picker.Options{
		Title:   "Run without asking and outside the sandbox, and rules; Enter revokes one",
		Columns: []picker.Column{{Title: "command or tool", Min: 20}, {Title: "in", Min: 12, Drop: 1}},
		Empty:   "None: you are asked. The dialog of an approval offers to add one.",
	})}
	var found []project.Permission
	s.done = func(id string) tea.Cmd {
		for i := range found {
			if fmt.Sprint(i) == id {
				return m.revoke(found[i])
			}
		}
		return m.hintf(theme.Warn, "edit rules/*.rules beside the configuration to change that")
	}
	s.SetLoading(true)
	m.screen = s
	dir := m.settings().Cwd
	return func() tea.Msg {
		list := store.Permissions(dir)
		return answer{func() tea.Cmd {
			s.SetLoading(false)
			found = list
			var rows []picker.Row
			for i, perm := range list {
				rows = append(rows, picker.Row{ID: fmt.Sprint(i), Columns: []string{safetext.ShowLine(perm.String()), cmp.Or(m.shortDir(perm.Dir), "everywhere")}})
			}
			for i, rule := range store.FileRules() {
				rows = append(rows, picker.Row{ID: fmt.Sprint("rule ", i), Columns: []string{safetext.ShowLine(rule.String()), fmt.Sprintf("%s, by rules/*.rules", rule.Decision)}})
			}
			s.SetRows(rows)
			return nil
		}}
	}
}

func (m *model) revoke(perm project.Permission) tea.Cmd {
	store := m.o.Projects
	return func() tea.Msg {
		err := store.Revoke(perm)
		return answer{func() tea.Cmd {
			if err != nil {
				return m.showError(err)
			}
			return m.hintf(theme.OK, "you are asked again about `%s`", perm)
		}}
	}
}

// trustDialog asks once whether a directory is trusted that nothing is known of: what
// may be done in it by default depends on that. Messages wait for the answer.
func (m *model) trustDialog(repo bool) tea.Cmd {
	root := m.shortDir(project.Dir(m.o.Dir))
	c := dialog.Confirm{
		Title: "Do you trust " + root + "?",
		Body: []string{
			"Files here can change what the model does, and what runs when it works on them.",
			"If you trust them, it may write here, and asks before anything else. Otherwise it only reads, and asks first.",
		},
		Choices: []dialog.Choice{
			{ID: string(project.Trusted), Key: "y", Label: "yes, let it write here"},
			{ID: string(project.Untrusted), Key: "n", Label: "no, only read"},
		},
	}
	if !repo {
		c.Body = append(c.Body, "This is not a git repository: changes cannot be undone with git.")
		c.Default = 1
	}
	m.dialog = &asking{Model: dialog.NewConfirm(m.theme, c), done: func(a dialog.Action) tea.Cmd {
		m.trusting = false
		if a.Choice == "" {
			return tea.Batch(m.flush(), m.hintf(theme.Accent, "you will be asked again next time; until then it only reads"))
		}
		store, dir := m.o.Projects, m.o.Dir
		return func() tea.Msg {
			err := store.SetTrust(dir, project.Trust(a.Choice))
			return answer{func() tea.Cmd {
				if err != nil {
					return tea.Batch(m.showError(err), m.flush())
				}
				return tea.Batch(m.preview(), m.flush())
			}}
		}
	}}
	return m.dialog.Guard(guardTime)
}
