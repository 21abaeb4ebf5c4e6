package patch

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// FileChange is one change as clients are shown it. In JSON it is
// {"add":{"content":…}}, "delete" or {"update":{"unified_diff":…,"move_path":…}}.
type FileChange struct {
	Kind        syntax.Kind
	Content     string // Add: the new content; Delete: the old one, which the JSON leaves out
	UnifiedDiff string // Update: without file header, with one line of context
	MovePath    string // Update: the new absolute path, if it moves
}

type wireUpdate struct {
	UnifiedDiff string  `json:"unified_diff"`
	MovePath    *string `json:"move_path"`
}

// MarshalJSON writes the form described at FileChange.
func (c FileChange) MarshalJSON() ([]byte, error) {
	switch c.Kind {
	case syntax.Add:
		return json.Marshal(map[string]any{"add": map[string]string{"content": c.Content}})
	case syntax.Delete:
		return []byte(`"delete"`), nil
	}
	update := wireUpdate{UnifiedDiff: c.UnifiedDiff}
	if c.MovePath != "" {
		update.MovePath = &c.MovePath
	}
	return json.Marshal(map[string]wireUpdate{"update": update})
}

// FileChanges returns the changes by absolute path. A file that moves is listed
// under its old path; if that puts it over another file, that one is listed as
// well, so that no user approves its loss unseen. For the same reason an added
// file that replaces one is an update.
func (p *Plan) FileChanges() map[string]FileChange {
	const context = 1
	changes := make(map[string]FileChange, len(p.Files))
	for _, f := range p.Files {
		from := p.moved(f)
		if from != nil {
			changes[from.Path] = FileChange{Kind: syntax.Update, UnifiedDiff: unified(text(from.Before), text(f.After), context), MovePath: f.Path}
		}
		switch {
		case f.Before == nil && from == nil:
			changes[f.Path] = FileChange{Kind: syntax.Add, Content: text(f.After)}
		case f.Before == nil, p.isMoved(f.Path), from != nil && same(f.Before, f.After):
			// Listed with the other end of its move.
		case f.After == nil:
			changes[f.Path] = FileChange{Kind: syntax.Delete, Content: text(f.Before)}
		default:
			changes[f.Path] = FileChange{Kind: syntax.Update, UnifiedDiff: unified(text(f.Before), text(f.After), context)}
		}
	}
	return changes
}

// moved returns the file that was moved to f, or nil.
func (p *Plan) moved(f File) *File {
	if f.From == "" {
		return nil
	}
	for i := range p.Files {
		if p.Files[i].Path == f.From {
			return &p.Files[i]
		}
	}
	return nil
}

func (p *Plan) isMoved(path string) bool {
	for _, f := range p.Files {
		if f.From == path {
			return true
		}
	}
	return false
}

// text returns what a diff shows of a content.
func text(c *Content) string {
	switch {
	case c == nil:
		return ""
	case c.Link != "":
		return c.Link
	}
	return c.Data
}

// Summary describes an applied plan to the model and the user: a
// line of success, then a line "A path", "M path" or "D path" for each file,
// in this order. A moved file counts as modified, under its new path.
func (p *Plan) Summary() string {
	var added, modified, deleted []string
	for _, f := range p.Files {
		switch {
		case f.After == nil && p.isMoved(f.Path), f.From == "" && same(f.Before, f.After):
			// Said by the other end of its move, or nothing to say.
		case f.After == nil:
			deleted = append(deleted, "D "+f.Name+"\n")
		case f.Before == nil && f.From == "":
			added = append(added, "A "+f.Name+"\n")
		default:
			modified = append(modified, "M "+f.Name+"\n")
		}
	}
	if len(added)+len(modified)+len(deleted) == 0 {
		return "Patch applied; no file is different.\n"
	}
	return "Patch applied. Files changed:\n" + strings.Join(added, "") + strings.Join(modified, "") + strings.Join(deleted, "")
}

// Diff returns the whole plan as one diff in git's format, which git apply
// understands. Paths below root are shown relative to it.
func (p *Plan) Diff(root string) string {
	var b strings.Builder
	for _, f := range p.Files {
		from := p.moved(f)
		if p.isMoved(f.Path) && f.After == nil || from == nil && same(f.Before, f.After) {
			continue
		}
		old := f
		if from != nil {
			old = *from
		}
		writeDiff(&b, diffPath(root, old.Path), diffPath(root, f.Path), old.Before, f.After)
	}
	return b.String()
}

func writeDiff(b *strings.Builder, from, to string, before, after *Content) {
	const context = 3
	fmt.Fprintf(b, "diff --git a/%s b/%s\n", from, to)
	oldName, newName := "a/"+from, "b/"+to
	switch {
	case before == nil:
		fmt.Fprintf(b, "new file mode %s\n", gitMode(after))
		oldName = "/dev/null"
	case after == nil:
		fmt.Fprintf(b, "deleted file mode %s\n", gitMode(before))
		newName = "/dev/null"
	case from != to:
		fmt.Fprintf(b, "rename from %s\nrename to %s\n", from, to)
	}
	old, new := text(before), text(after)
	if old == new {
		return
	}
	if isBinary(old) || isBinary(new) {
		fmt.Fprintf(b, "Binary files %s and %s differ\n", oldName, newName)
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n%s", oldName, newName, unified(old, new, context))
}

func diffPath(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return strings.TrimPrefix(path, "/")
}

func gitMode(c *Content) string {
	switch {
	case c.Link != "":
		return "120000"
	case c.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

func isBinary(s string) bool {
	return strings.ContainsRune(s, 0) || !utf8.ValidString(s)
}
