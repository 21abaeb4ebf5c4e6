package managecmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/safetext"
)

// A table is the list of conversations. On a terminal, whose width is known, each row is one line: ids are
// shortened to what is enough to name one, directories to their end, and titles to what fits.
type table struct {
	width int // 0: not a terminal
	rows  [][]string
}

// The columns that are shortened.
const (
	idColumn        = 0
	stateColumn     = 2
	usedColumn      = 3
	directoryColumn = 4
	shortID         = len("01a1df48-95b6")
	maxDirectory    = 28
	minTitle        = 12
)

func (t table) print(w io.Writer) error {
	widths := make([]int, len(t.rows[0]))
	for r, row := range t.rows {
		for i, text := range row {
			text = strings.Join(strings.Fields(safetext.Strip(text)), " ")
			switch {
			case t.width == 0 || r == 0:
			case i == idColumn:
				text = text[:min(len(text), shortID)]
			case i == directoryColumn && ansi.StringWidth(text) > maxDirectory:
				text = ansi.TruncateLeft(text, ansi.StringWidth(text)-maxDirectory+1, "…")
			}
			row[i] = text
			widths[i] = max(widths[i], ansi.StringWidth(text))
		}
	}
	t.fit(widths)
	for _, row := range t.rows {
		var line strings.Builder
		for i, text := range row {
			if widths[i] == 0 {
				continue
			}
			if i < len(row)-1 {
				text += strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(text))+2)
			} else if t.width > 0 {
				text = ansi.Truncate(text, max(minTitle, widths[i]), "…")
			}
			line.WriteString(text)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// fit gives the title what is left of the line, and leaves out what was used if that is too little.
func (t table) fit(widths []int) {
	if t.width == 0 {
		return
	}
	title := len(widths) - 1
	left := func() int {
		n := t.width
		for _, w := range widths[:title] {
			if w > 0 {
				n -= w + 2
			}
		}
		return n
	}
	for _, i := range []int{usedColumn, directoryColumn, stateColumn} {
		if left() < 2*minTitle {
			widths[i] = 0
		}
	}
	widths[title] = left()
}

// age is how long ago something was, in short.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}
