package commands

import (
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
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
