package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// trustDialog asks once whether a directory is trusted that nothing is known of: what
// may be done in it by default depends on that. Messages wait for the answer.
func (m *model) trustDialog(repo bool) tea.Cmd {
	root := m.ShortDir(project.Dir(m.o.Dir))
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
	m.dialog = &asking{Dialog: dialog.NewConfirm(m.theme, c), done: func(a dialog.Answer) tea.Cmd {
		m.trusting = false
		if a.Choice == "" {
			return tea.Batch(m.flush(), m.Hint(theme.Accent, "you will be asked again next time; until then it only reads"))
		}
		store, dir := m.o.Projects, m.o.Dir
		return func() tea.Msg {
			err := store.SetTrust(dir, project.Trust(a.Choice))
			return terminal.Done{Then: func() tea.Cmd {
				if err != nil {
					return tea.Batch(m.ShowError(err), m.flush())
				}
				return tea.Batch(m.preview(), m.flush())
			}}
		}
	}}
	return m.dialog.Guard(guardTime)
}
