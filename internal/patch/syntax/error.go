package syntax

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
)

// Error says why a patch was refused, in enough detail to mend it. Nothing has
// been written when it is returned.
type Error struct {
	Line    int    // line of the patch, "*** Begin Patch" being line 1; 0 when no line is to blame
	File    string // the file as the patch spells it; empty when the patch as a whole is wrong
	Problem string // what is wrong

	Wanted      []string // the lines that were looked for, if any were
	Nearest     []string // the most similar lines of the file; none when nothing is similar
	NearestLine int      // where Nearest begins in the file, counted from 1
	Hint        string   // how it could be mended, when that can be guessed

	Err error // what the file system said, if it is the cause
}

// shownLines bounds how much of a text is repeated in a message: a model pays
// for every line of it.
const shownLines = 12

func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "patch line %d: ", e.Line)
	}
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	b.WriteString(e.Problem)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if len(e.Wanted) > 0 {
		b.WriteString("\nlooked for:")
		quoteLines(&b, e.Wanted)
	}
	if len(e.Nearest) > 0 {
		fmt.Fprintf(&b, "\nnearest text, from line %d of the file:", e.NearestLine)
		quoteLines(&b, e.Nearest)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\nhint: %s", e.Hint)
	}
	return b.String()
}

// Unwrap returns what the file system said, if it is the cause.
func (e *Error) Unwrap() error { return e.Err }

func quoteLines(b *strings.Builder, lines []string) {
	for i, line := range lines {
		if i == shownLines {
			fmt.Fprintf(b, "\n  (%s)", humanize.Count(len(lines)-i, "more line"))
			return
		}
		b.WriteString("\n  | ")
		b.WriteString(line)
	}
}
