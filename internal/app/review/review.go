// Package review asks a model to review changes. A [Target] says which; all surfaces that offer a review
// send the same [Target.Prompt].
package review

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/humanize"
)

// A Target is what is reviewed. Without a branch, a commit, a name and instructions it is what differs from
// the last commit.
type Target struct {
	Uncommitted  bool   // what differs from the last commit, whatever the instructions say
	Base         string // a branch: what this one has changed since it left it
	Commit       string // one commit
	Name         string // a branch or a commit, as for Base or Commit; the model finds out which
	Instructions string // what to look at or for, in the user's own words
}

const task = `Review the changes named below as a careful colleague would. Do not change any files.
Look at the diff and at the code around it. Report problems that matter: bugs, broken promises to callers, missing or weak tests, security. For each one give the file and line, what goes wrong, and how to mend it; the worst first. Do not praise, and do not report matters of taste. If nothing is wrong, say so in one line.

The changes: `

const uncommitted = "everything in the working tree that differs from the last commit (git status, git diff HEAD, and files that git does not know)."

// Prompt is what the model is asked.
func (t Target) Prompt() string {
	text := task
	switch {
	case t.Base != "":
		text += fmt.Sprintf("those of this branch since it left %s (git diff %[1]s...HEAD).", t.Base)
	case t.Commit != "":
		text += fmt.Sprintf("those of the commit %s (git show %[1]s).", t.Commit)
	case t.Name != "":
		text += fmt.Sprintf("those that %s names: a commit (git show %[1]s), or a branch that this one began from (git diff %[1]s...HEAD).", t.Name)
	case t.Instructions == "" || t.Uncommitted:
		text += uncommitted
	default:
		return text + "those that the instructions name, or else " + uncommitted + "\n\nThe instructions: " + t.Instructions
	}
	if t.Instructions != "" {
		text += "\n\nLook at this in particular: " + t.Instructions
	}
	return text
}

// Title is the target in a few words.
func (t Target) Title() string {
	switch {
	case t.Base != "":
		return "changes against " + t.Base
	case t.Commit != "":
		return "commit " + t.Commit
	case t.Name != "":
		return t.Name
	case t.Instructions == "" || t.Uncommitted:
		return "current changes"
	}
	return t.Instructions
}

// ErrNothing means that there are no changes to review.
var ErrNothing = errors.New("nothing to review")

// Check reports whether there is what the target names, so that no model is asked about nothing.
func (t Target) Check(ctx context.Context, r *git.Repo) error {
	switch {
	case t.Base != "":
		return t.checkBase(ctx, r)
	case t.Commit != "":
		_, err := commit(ctx, r, "commit", t.Commit)
		return err
	case t.Instructions != "" && !t.Uncommitted:
		return nil
	}
	dirty, err := r.Dirty(ctx)
	if err == nil && !dirty {
		return &app.Error{Err: fmt.Errorf("%w: nothing differs from the last commit", ErrNothing), Hint: "--base BRANCH reviews what this branch has changed, --commit SHA a commit"}
	}
	return err
}

func (t Target) checkBase(ctx context.Context, r *git.Repo) error {
	if _, err := commit(ctx, r, "branch", t.Base); err != nil {
		return err
	}
	ahead, err := r.Ahead(ctx, t.Base)
	if err == nil && !ahead {
		return &app.Error{Err: fmt.Errorf("%w: this branch has no commit that %s does not have", ErrNothing, t.Base), Hint: "--uncommitted reviews what is not committed"}
	}
	return err
}

// commit finds the commit that a name means.
func commit(ctx context.Context, r *git.Repo, kind, name string) (string, error) {
	sha, err := r.Commit(ctx, name)
	if !errors.Is(err, git.ErrNoCommit) {
		return sha, err
	}
	hint := "git branch --all lists the branches, git log the commits"
	if near := nearest(ctx, r, name); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return "", &app.Error{Err: fmt.Errorf("there is no %s %q", kind, name), Hint: hint, Usage: true}
}

// nearest is the branch that a name most likely stands for: that of a remote if there is one of that name.
func nearest(ctx context.Context, r *git.Repo, name string) string {
	branches, _ := r.Branches(ctx) // without them there is nothing to suggest
	for _, b := range branches {
		if strings.HasSuffix(b, "/"+name) {
			return b
		}
	}
	return humanize.Nearest(name, branches)
}
