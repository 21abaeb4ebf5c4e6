package managecmd

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestTableFits(t *testing.T) {
	const id = "01a1df48-95b6-78a9-b273-5922d9b1ee09"
	for _, width := range []int{0, 40, 60, 80, 120, 200} {
		rows := [][]string{
			{"ID", "AGE", "STATE", "USED", "DIRECTORY", "TITLE"},
			{id, "3 min", "completed", "12k tokens, $0.12", "~/src/a/very/long/path/to/some/project", "Fix the parser\nand more " + strings.Repeat("長い", 40)},
			{id, "2 d", "open", "", "~", "\x1b[31mred"},
		}
		var out strings.Builder
		if err := (table{width: width, rows: rows}).print(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 3 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("width %d:\n%q", width, out.String())
		}
		for _, l := range lines {
			if width > 0 && ansi.StringWidth(l) > width {
				t.Errorf("width %d: %d wide: %q", width, ansi.StringWidth(l), l)
			}
		}
		if width == 0 && !strings.HasPrefix(lines[1], id+"  3 min") {
			t.Errorf("in a pipe: %q", lines[1])
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", 59 * time.Second: "now", time.Minute: "1 min", 90 * time.Minute: "1 h", 25 * time.Hour: "1 d", 400 * 24 * time.Hour: "400 d",
	} {
		if got := age(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
