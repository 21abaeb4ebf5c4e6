package dialog

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/transcript"
)

// DiffOf is the diff of a patch that the user is asked about. Paths below dir
// are relative to it.
func DiffOf(changes []transcript.Change, dir string) string {
	name := func(side, path string) string {
		short := strings.TrimPrefix(path, strings.TrimSuffix(dir, "/")+"/")
		if strings.HasPrefix(short, "/") { // elsewhere
			return short
		}
		return side + short
	}
	var b strings.Builder
	for _, c := range changes {
		from, to := name("a/", c.Path), name("b/", c.Path)
		switch {
		case c.Kind == "add":
			from = "/dev/null"
		case c.Kind == "delete":
			to = "/dev/null"
		case c.Move != "":
			to = name("b/", c.Move)
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n%s", from, to, c.Diff)
		if c.Diff != "" && !strings.HasSuffix(c.Diff, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
