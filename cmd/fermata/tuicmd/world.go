package tuicmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	p "github.com/fermata-agent/fermata/protocol"
)

// lookTime is how long git may take to say something that is only nice to know.
const lookTime = 3 * time.Second

// openGit opens the repository that a directory is in. The caller closes it.
func openGit(ctx context.Context, dir string) (*git.Repo, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	return app.OpenGit(ctx, home, dir)
}

// branch is the name of the branch, or the commit, that a directory is on.
func branch(_ context.Context, dir string) string { return git.Branch(dir) }

// treeChanges is what differs from the last commit.
func treeChanges(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	repo, err := openGit(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("the last turn changed no files, and there is nothing to compare with: %w", err)
	}
	defer repo.Close()
	diff, err := repo.Diff(ctx, "HEAD")
	if err != nil {
		return "", fmt.Errorf("the last turn changed no files, and there is no commit to compare with: %w", err)
	}
	untracked, err := repo.Untracked(ctx)
	for _, name := range untracked {
		diff += "untracked: " + name + "\n"
	}
	return diff, err
}

// gitFiles lists the files of a repository that are not ignored.
func gitFiles(dir string) composer.Lister {
	return func(ctx context.Context) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		repo, err := openGit(ctx, dir)
		if err != nil {
			return nil, err
		}
		defer repo.Close()
		return repo.Files(ctx)
	}
}

// processName says what a process is.
func processName(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	words := strings.Fields(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
	if len(words) == 0 {
		return ""
	}
	words[0] = filepath.Base(words[0])
	name := []rune(strings.Join(words, " "))
	if len(name) > 40 {
		name = append(name[:39], '…')
	}
	return string(name)
}

// editorCommand makes the command that edits a text in the person's editor.
func editorCommand(ctx context.Context, text string) (*exec.Cmd, func() (string, error), error) {
	editor, err := editorName()
	if err != nil {
		return nil, nil, err
	}
	f, err := os.CreateTemp("", "fermata-*.md")
	if err != nil {
		return nil, nil, err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return nil, nil, err
	}
	read := func() (string, error) {
		defer os.Remove(f.Name())
		b, err := os.ReadFile(f.Name())
		return string(b), err
	}
	// The variable may hold flags, as those of git and others do.
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+editor+` "$1"`, "sh", f.Name())
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // which editors save at
	cmd.WaitDelay = time.Second
	return cmd, read, nil
}

func editorName() (string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v, nil
		}
	}
	for _, name := range []string{"nano", "vi"} {
		if _, err := exec.LookPath(name); err == nil {
			return name, nil
		}
	}
	return "", errors.New("no editor found: set VISUAL or EDITOR")
}

// planUndo is app.PlanUndo for a place that has one line for an error.
func planUndo(r *app.App) func(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error) {
	return func(ctx context.Context, id p.ConversationID, turn p.TurnID) (*app.Undo, error) {
		u, err := app.PlanUndo(ctx, r.Engine, id, turn)
		var withHint *app.Error
		if errors.As(err, &withHint) && withHint.Hint != "" {
			err = fmt.Errorf("%w; %s", err, withHint.Hint)
		}
		return u, err
	}
}

// offers are the services that a key can be entered for: the one that is
// configured and has none, and those that are known.
func offers(l app.Loaded, missing *config.MissingKeyError) []screen.KeyOffer {
	ids := []string{"openai", "anthropic", "openrouter"}
	if missing != nil {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == missing.Provider })
		ids = slices.Insert(ids, 0, missing.Provider)
	}
	var list []screen.KeyOffer
	for _, id := range ids {
		_, err := l.Models().Choose(id)
		var missing *config.MissingKeyError
		if errors.As(err, &missing) {
			list = append(list, screen.KeyOffer{Provider: id, Variable: missing.Variables[len(missing.Variables)-1]})
		}
	}
	return list
}
