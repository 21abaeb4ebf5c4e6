package tui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// approvalDiff is the diff of a patch that somebody is asked about.
func approvalDiff(detail json.RawMessage, dir string) string {
	var byPath map[string]json.RawMessage
	if json.Unmarshal(detail, &byPath) != nil {
		return ""
	}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		name := strings.TrimPrefix(path, strings.TrimSuffix(dir, "/")+"/")
		fileDiff(&b, name, byPath[path])
	}
	return b.String()
}

func fileDiff(b *strings.Builder, name string, raw json.RawMessage) {
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
	case string(raw) == `"delete"`:
		fmt.Fprintf(b, "--- a/%s\n+++ /dev/null\n", name)
	case err != nil:
	case c.Add != nil:
		fmt.Fprintf(b, "--- /dev/null\n+++ b/%s\n", name)
		for line := range strings.Lines(c.Add.Content) {
			fmt.Fprintf(b, "+%s\n", strings.TrimSuffix(line, "\n"))
		}
	case c.Update != nil:
		to := name
		if c.Update.Move != "" {
			to = c.Update.Move
		}
		fmt.Fprintf(b, "--- a/%s\n+++ b/%s\n%s", name, to, c.Update.Diff)
		if !strings.HasSuffix(c.Update.Diff, "\n") {
			b.WriteByte('\n')
		}
	}
}
