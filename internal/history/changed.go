package history

import (
	"fmt"
	"slices"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// A fileChange is what patches did to a file.
type fileChange struct {
	Path           string
	Added, Removed int // lines
}

// mostChanges is how many changed files are remembered for a summary.
const mostChanges = 40

// noteChange remembers what a patch did, the file that was changed last at the end.
func (h *History) noteChange(b *p.PatchResult) {
	for _, c := range changesIn(b.Diff) {
		list := slices.Clone(h.changed)
		if i := slices.IndexFunc(list, func(o fileChange) bool { return o.Path == c.Path }); i >= 0 {
			c.Added, c.Removed = c.Added+list[i].Added, c.Removed+list[i].Removed
			list = slices.Delete(list, i, i+1)
		}
		list = append(list, c)
		h.changed = list[max(0, len(list)-mostChanges):]
	}
}

// changesIn counts the lines of a unified diff.
func changesIn(diff string) []fileChange {
	var list []fileChange
	old, left := "", [2]int{} // lines of the section that are left, of the old and the new file
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		body := left[0] > 0 || left[1] > 0
		n := len(list)
		switch {
		case body && strings.HasPrefix(line, "+"):
			left[1]--
			list[n-1].Added++
		case body && strings.HasPrefix(line, "-"):
			left[0]--
			list[n-1].Removed++
		case body && !strings.HasPrefix(line, `\`):
			left[0], left[1] = left[0]-1, left[1]-1
		case strings.HasPrefix(line, "--- "):
			old = strings.TrimPrefix(line[4:], "a/")
		case strings.HasPrefix(line, "+++ "):
			name := strings.TrimPrefix(line[4:], "b/")
			if name == "/dev/null" {
				name = old
			}
			list = append(list, fileChange{Path: name})
		case strings.HasPrefix(line, "@@ ") && n > 0:
			left = sectionLength(line)
		}
	}
	return list
}

// sectionLength reads how many lines a section has: "@@ -1,3 +1,4 @@".
func sectionLength(line string) [2]int {
	length := [2]int{1, 1}
	for i, field := range strings.Fields(line)[1:min(3, len(strings.Fields(line)))] {
		if _, count, ok := strings.Cut(field, ","); ok {
			_, _ = fmt.Sscan(count, &length[i])
		}
	}
	return length
}

// changedText lists the files that were changed, "" if none was.
func (h *History) changedText() string {
	var b strings.Builder
	for _, c := range h.changed {
		fmt.Fprintf(&b, "- %s (+%d −%d)\n", c.Path, c.Added, c.Removed)
	}
	return b.String()
}

// How much of the latest outputs a compaction keeps.
const (
	keptOutputs   = 3
	keptOutput    = 3000 // bytes of one
	keptOutputMin = 200  // bytes of one that are worth keeping
)

// latestOutputs are the last calls with what they printed, oldest first, in at most so many bytes.
func (h *History) latestOutputs(room int) string {
	var list []string
	for _, e := range slices.Backward(h.entries) {
		if e.item.Kind != p.PromptOutput || strings.TrimSpace(e.item.Text) == "" {
			continue
		}
		if len(list) == keptOutputs || room < keptOutputMin {
			break
		}
		text := fmt.Sprintf("%s\n%s", h.describeCall(e.item.Call), strings.TrimRight(shortenText(e.item.Text, min(keptOutput, room), ""), "\n"))
		room -= len(text)
		list = append(list, text)
	}
	slices.Reverse(list)
	return strings.Join(list, "\n\n")
}

func (h *History) describeCall(id p.CallID) string {
	for _, e := range slices.Backward(h.entries) {
		if e.item.Kind == p.PromptCall && e.item.Call == id {
			return describe(e.item)
		}
	}
	return "a call"
}
