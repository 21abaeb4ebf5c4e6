package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Bundle is what a working tree and the branches of its repository have beyond a commit.
type Bundle struct {
	Data  []byte `json:"-"`     // as git bundle writes it
	Head  string `json:"head"`  // the commit that is checked out
	Ref   string `json:"ref"`   // its branch; empty if there is none
	State string `json:"state"` // a commit with the files of the working tree, without what is ignored
}

// stateRef is how State is called in the bundle.
const stateRef = "refs/fermata/state"

// Bundle returns what the repository has beyond a commit, its branches and the files of its working tree that are not
// ignored. Staged changes are kept like the others. If that is more than limit bytes, it returns ErrTooMuch.
func (r *Repo) Bundle(ctx context.Context, base string, limit int) (Bundle, error) {
	var b Bundle
	head, err := r.Commit(ctx, "HEAD")
	if err != nil {
		return b, err
	}
	b.Head = head
	if text, err := readSmall(filepath.Join(r.Dir, "HEAD")); err == nil {
		b.Ref, _ = strings.CutPrefix(text, "ref: ")
	}
	if IsCommit(b.Ref) {
		b.Ref = ""
	}
	tree, err := r.WriteTree(ctx)
	if err != nil {
		return b, err
	}
	c := r.command("commit-tree", "-p", head, "-m", "the files of a work tree", tree)
	c.env = append(c.env, "GIT_AUTHOR_NAME=fermata", "GIT_AUTHOR_EMAIL=fermata@localhost", "GIT_COMMITTER_NAME=fermata", "GIT_COMMITTER_EMAIL=fermata@localhost")
	out, err := c.run(ctx)
	if err != nil {
		return b, err
	}
	b.State = strings.TrimSpace(out)
	branches, err := r.run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
	if err != nil {
		return b, err
	}
	refs := b.State + " " + stateRef + "\n" + branches
	var wanted strings.Builder
	for line := range strings.Lines(refs) {
		name, _, _ := strings.Cut(line, " ")
		wanted.WriteString(name + "\n")
	}
	c = r.command("pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "-q")
	c.in, c.max = wanted.String()+"^"+base+"\n", limit
	pack, err := c.run(ctx)
	if err != nil {
		return b, err
	}
	b.Data = []byte("# v2 git bundle\n-" + base + " \n" + refs + "\n" + pack)
	return b, nil
}

// Restore makes a working tree that Clone has just made, at the commit that the bundle begins with, as the one that the
// bundle was made of.
func Restore(ctx context.Context, dir string, b Bundle) error {
	w := madeTree(dir)
	name := filepath.Join(dir, ".git", "restored.bundle")
	if err := os.WriteFile(name, b.Data, 0o600); err != nil {
		return err
	}
	defer os.Remove(name)
	refs, err := w.run(ctx, "bundle", "unbundle", name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(refs) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(ref, "refs/heads/") {
			continue
		}
		if _, err := w.run(ctx, "update-ref", ref, commit); err != nil {
			return err
		}
	}
	head := []string{"update-ref", "--no-deref", "HEAD", b.Head}
	if b.Ref != "" {
		head = []string{"symbolic-ref", "HEAD", b.Ref}
	}
	for _, args := range [][]string{head, {"read-tree", "--reset", "-u", b.State}, {"reset", "-q"}} {
		if _, err := w.run(ctx, args...); err != nil {
			return err
		}
	}
	if now, err := w.run(ctx, "rev-parse", "HEAD"); err != nil || strings.TrimSpace(now) != b.Head {
		return fmt.Errorf("the branch %s is not at %s in the bundle", b.Ref, b.Head)
	}
	return nil
}
