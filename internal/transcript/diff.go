package transcript

import (
	"path/filepath"
	"strings"
)

const fileHeader = "diff --git "

// ParseDiff reads a diff in git's format, such as that of a turn. The paths are
// as they are written there.
func ParseDiff(diff string) []Change {
	var list []Change
	body := &strings.Builder{}
	flush := func() {
		if n := len(list); n > 0 {
			list[n-1].setDiff(body.String())
		}
		body.Reset()
	}
	inBody := false
	for line := range strings.Lines(diff) {
		switch text := strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(text, fileHeader):
			flush()
			list, inBody = append(list, Change{Kind: "update", Path: headerPath(text)}), false
		case len(list) == 0:
		case inBody || strings.HasPrefix(text, "@@ ") || strings.HasPrefix(text, "Binary files "):
			inBody = true
			body.WriteString(line)
		default:
			list[len(list)-1].header(text)
		}
	}
	flush()
	return list
}

// headerPath reads "diff --git a/path b/path". Only a file that moves has two
// names, and those are shown again.
func headerPath(line string) string {
	names := strings.TrimPrefix(line, fileHeader)
	return strings.TrimPrefix(strings.Trim(names[:len(names)/2], `"`), "a/")
}

// header reads one of the lines between the name of a file and its hunks.
func (c *Change) header(line string) {
	switch word, rest, _ := strings.Cut(line, " "); {
	case word == "new":
		c.Kind = "add"
	case word == "deleted":
		c.Kind = "delete"
	case strings.HasPrefix(line, "rename from "):
		c.Path = strings.TrimPrefix(rest, "from ")
	case strings.HasPrefix(line, "rename to "):
		c.Move = strings.TrimPrefix(rest, "to ")
	}
}

// setDiff sets the hunks, and counts them.
func (c *Change) setDiff(hunks string) {
	c.Diff, c.Added, c.Removed = hunks, 0, 0
	for line := range strings.Lines(hunks) {
		switch line[0] { // there is no file header
		case '+':
			c.Added++
		case '-':
			c.Removed++
		}
	}
}

// addition is the diff of a new file.
func addition(content string) string {
	var b strings.Builder
	for line := range strings.Lines(content) {
		b.WriteString("+" + line)
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.String()
}

// withDiff returns the changes with the diff that was made when they were
// applied, which shows more: what was in a file that is gone, for one.
func withDiff(changes []Change, diff, dir string) []Change {
	if diff == "" {
		return changes
	}
	byPath := map[string]Change{}
	for _, c := range ParseDiff(diff) {
		byPath[c.Path] = c
	}
	out := append([]Change(nil), changes...)
	for i := range out {
		name := strings.TrimPrefix(out[i].Path, "/")
		if rel, err := filepath.Rel(dir, out[i].Path); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
		if c, ok := byPath[name]; ok && c.Diff != "" {
			out[i].setDiff(c.Diff)
		}
	}
	return out
}
