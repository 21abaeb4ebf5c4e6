package safetext

import (
	"fmt"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"one line":        {"ls -l", "ls -l"},
		"blank lines":     {"rm -rf x" + strings.Repeat("\n", 301) + "ls", "rm -rf x|⋮ 300 blank lines|ls"},
		"with spaces":     {"rm" + strings.Repeat("\n \t\r", 50) + "\nls", "rm|⋮ 50 blank lines|ls"},
		"one blank line":  {"a\n\nb", "a||b"},
		"a run of spaces": {"rm x" + strings.Repeat(" ", 20*100) + "; ls", "rm x|; ls"},
		"at the end":      {"a\n\n\n", "a"},
		"controls":        {"a\x1b[2Jb\rc", "a␛[2Jb␍c"},
		"hidden":          {"a\u202eb", "a\ufffdb"},
	} {
		if got := strings.Join(Fold(tt.text, 20), "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestFoldTo(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintln(&text, i)
	}
	if got, want := strings.Join(FoldTo(5, text.String(), 20), "|"), "0|1|2|… 47 more lines; the last one is:|49"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := FoldTo(5, "a\nb", 20); len(got) != 2 {
		t.Errorf("%q", got)
	}
}
