package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Change is what a patch does to one file.
type Change struct {
	Path    string // absolute
	Kind    string // add, delete or update
	Move    string // for an update: where the file moves to, absolute
	Added   int    // lines
	Removed int    // lines; not known of a file that is to be deleted
	Diff    string // hunks in unified format, without a file header
}

// Changes reads the changes that a PatchStarted or an approval of a patch
// carries, in the order of their paths. What cannot be read is left out.
func Changes(raw json.RawMessage) []Change {
	var byPath map[string]json.RawMessage
	if json.Unmarshal(raw, &byPath) != nil {
		return nil
	}
	var list []Change
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if c, ok := change(path, byPath[path]); ok {
			list = append(list, c)
		}
	}
	return list
}

func change(path string, raw json.RawMessage) (Change, bool) {
	if string(raw) == `"delete"` {
		return Change{Path: path, Kind: "delete"}, true
	}
	var c struct {
		Add *struct {
			Content string `json:"content"`
		} `json:"add"`
		Update *struct {
			Diff string `json:"unified_diff"`
			Move string `json:"move_path"`
		} `json:"update"`
	}
	switch err := json.Unmarshal(raw, &c); {
	case err != nil:
	case c.Add != nil:
		out := Change{Path: path, Kind: "add"}
		out.setDiff(addition(c.Add.Content))
		return out, true
	case c.Update != nil:
		out := Change{Path: path, Kind: "update", Move: c.Update.Move}
		out.setDiff(c.Update.Diff)
		return out, true
	}
	return Change{}, false
}

var letters = map[string]string{"add": "A", "delete": "D", "update": "M"}

// Line is the change in one line, such as "M src/app.go (+3 -1)". Paths below
// dir are shown relative to it.
func (c Change) Line(dir string) string {
	line := letters[c.Kind] + " " + short(dir, c.Path)
	if c.Move != "" {
		line += " → " + short(dir, c.Move)
	}
	if c.Added+c.Removed > 0 {
		line += fmt.Sprintf(" (+%d -%d)", c.Added, c.Removed)
	}
	return line
}

func short(dir, path string) string {
	if dir == "" {
		return path
	}
	return strings.TrimPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func undone(b *p.Undone) string {
	text := fmt.Sprintf("what turn %d changed in files was undone", b.Of)
	if len(b.Files) > 0 {
		text += ": " + strings.Join(b.Files, ", ")
	}
	return text
}
