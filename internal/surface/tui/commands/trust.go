package commands

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// TrustQuestion asks once whether a directory is trusted that nothing is known of: what
// may be done in it by default depends on that. The choices are those of project.Trust.
func (s Set) TrustQuestion(dir string, repo bool) dialog.Confirm {
	c := dialog.Confirm{
		Title: "Do you trust " + s.ShortDir(project.Dir(dir)) + "?",
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
	return c
}

// SetTrust remembers whether a directory is trusted, and calls saved; notSaved if the user did not choose, or if it failed.
func (s Set) SetTrust(dir, choice string, saved, notSaved func() tea.Cmd) tea.Cmd {
	if choice == "" {
		return tea.Batch(notSaved(), s.Hint(theme.Accent, "you will be asked again next time; until then it only reads"))
	}
	return terminal.Do(func() func() tea.Cmd {
		err := s.Projects.SetTrust(dir, project.Trust(choice))
		return func() tea.Cmd {
			if err != nil {
				return tea.Batch(s.ShowError(err), notSaved())
			}
			return saved()
		}
	})
}
