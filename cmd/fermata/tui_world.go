package main

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

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/surface/tui"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer/store"
	"github.com/fermata-agent/fermata/internal/surface/tui/first"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// lookTime is how long git may take to say something that is only nice to know.
const lookTime = 3 * time.Second

// gitIn runs git without taking its locks, so that it is in nobody's way, and
// without anything that the repository would have it run.
func gitIn(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	return cmd.Output()
}

// branch is the name of the branch, or the commit, that a directory is on.
func branch(ctx context.Context, dir string) string {
	for _, args := range [][]string{{"symbolic-ref", "--short", "-q", "HEAD"}, {"rev-parse", "--short", "HEAD"}} {
		if out, err := gitIn(ctx, dir, args...); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
}

// treeChanges is what differs from the last commit.
func treeChanges(ctx context.Context, dir string) (string, error) {
	out, err := gitIn(ctx, dir, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD")
	if err != nil {
		return "", errors.New("the last turn changed no files, and this is no git repository with a commit")
	}
	if more, err := gitIn(ctx, dir, "ls-files", "--others", "--exclude-standard"); err == nil {
		for line := range strings.Lines(string(more)) {
			out = fmt.Appendf(out, "untracked: %s", line)
		}
	}
	return string(out), nil
}

// gitFiles lists the files of a repository that are not ignored.
func gitFiles(dir string) store.Lister {
	return func(ctx context.Context) ([]string, error) {
		out, err := gitIn(ctx, dir, "ls-files", "-co", "--exclude-standard", "-z")
		if err != nil {
			return nil, err
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
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
	return "", errors.New("there is none: set VISUAL or EDITOR")
}

// undo works out what putting a turn's files back would do.
func (r *runtime) undo(ctx context.Context, id p.ConversationID, turn p.TurnID) (*tui.Undo, error) {
	snap, err := r.engine.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	var notes strings.Builder
	u := &undoing{streams: streams{err: &notes}, engine: r.engine, id: id, cwd: snap.Settings.Cwd}
	log, err := readChanges(ctx, r.engine, id)
	if err != nil {
		return nil, err
	}
	t, err := log.choose(turn)
	if err != nil {
		return nil, err
	}
	plan, err := u.plan(ctx, t)
	if err != nil {
		return nil, withHint(u.refused(t, log, err))
	}
	out := &tui.Undo{Turn: t.turn, Files: len(plan.Files), Diff: plan.Diff(u.cwd)}
	for line := range strings.Lines(notes.String()) {
		out.Notes = append(out.Notes, strings.TrimPrefix(strings.TrimSpace(line), "fermata: "))
	}
	out.Do = func(ctx context.Context) error {
		return tool.PutBack(ctx, patch.OS{}, plan, t.turn, func(op p.Undo) error {
			_, err := r.engine.Submit(ctx, id, op)
			return err
		})
	}
	return out, nil
}

// withHint puts an error's hint behind it, for where there is only one line.
func withHint(err error) error {
	var exit *exitError
	if errors.As(err, &exit) && exit.hint != "" {
		return fmt.Errorf("%w; %s", exit.err, exit.hint)
	}
	return err
}

// modelRows are the models that could be used now.
func (r *runtime) modelRows(context.Context) ([]tui.ModelRow, error) {
	var rows []tui.ModelRow
	for _, id := range r.config.Providers() {
		choice, err := r.models.choose(id)
		if err != nil {
			continue // it has no key
		}
		if rest, ok := localModels(choice.Provider); ok {
			for _, name := range rest {
				rows = append(rows, tui.ModelRow{Provider: id, Model: name, Note: "on this machine"})
			}
			continue
		}
		if len(choice.Provider.EnvKeys) == 0 && id != config.Demo {
			continue // a server that does not answer
		}
		rows = append(rows, tui.ModelRow{Provider: id, Model: choice.Model, Note: choice.Provider.Name})
	}
	return rows, nil
}

// localModels are those of a server on this machine, if it is one that answers.
func localModels(pr config.Provider) ([]string, bool) {
	if len(pr.EnvKeys) > 0 || pr.BaseURL == "" {
		return nil, false
	}
	return probe(pr.BaseURL)
}

// probeLocal says which model an Ollama on this machine has.
func probeLocal(l loaded) (string, bool) {
	m := models{load: l.options, config: l.config}
	choice, err := m.choose("ollama")
	if err != nil {
		return "", false
	}
	list, ok := probe(choice.Provider.BaseURL)
	if !ok {
		return "", false
	}
	if len(list) == 0 {
		return "it has no model yet: ollama pull " + choice.Model, true
	}
	return strings.Join(list, ", "), true
}

// offers are the services that a key can be entered for: the one that is
// configured and has none, and those that are known.
func offers(l loaded, missing *config.MissingKeyError) []first.Offer {
	ids := []string{"openai", "anthropic", "openrouter"}
	if missing != nil {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == missing.Provider })
		ids = slices.Insert(ids, 0, missing.Provider)
	}
	var list []first.Offer
	for _, id := range ids {
		m := models{load: l.options, config: l.config}
		_, err := m.choose(id)
		var missing *config.MissingKeyError
		if errors.As(err, &missing) {
			list = append(list, first.Offer{Provider: id, Variable: missing.Variables[len(missing.Variables)-1]})
		}
	}
	return list
}
