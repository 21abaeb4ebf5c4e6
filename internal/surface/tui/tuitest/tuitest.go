// Package tuitest serves the tests of what a person types into: it makes key
// presses of their names and compares frames with golden files.
package tuitest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/safetext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var special = map[string]rune{
	"left": tea.KeyLeft, "right": tea.KeyRight, "up": tea.KeyUp, "down": tea.KeyDown,
	"home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	"backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "space": tea.KeySpace,
}

// Press returns the key of a keystroke such as "ctrl+left", "alt+b", "enter" or "x".
func Press(name string) tea.KeyPressMsg {
	var k tea.KeyPressMsg
	for {
		mod, rest, ok := strings.Cut(name, "+")
		m, known := map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[mod]
		if !ok || !known {
			break
		}
		k.Mod |= m
		name = rest
	}
	if code, ok := special[name]; ok {
		k.Code = code
		if name == "space" {
			k.Text = " "
		}
		return k
	}
	r, n := utf8.DecodeRuneInString(name)
	k.Code = r
	if n < len(name) {
		k.Code = tea.KeyExtended
	}
	if k.Mod == 0 {
		k.Text = name
	}
	if unicode.IsUpper(r) {
		k.Code, k.Mod = unicode.ToLower(r), k.Mod|tea.ModShift
	}
	return k
}

// Frame returns a frame as text: each line between bars that show its width, and
// the cursor.
func Frame(lines []string, cursor *tea.Cursor, width int) string {
	var s strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&s, "%s%s|\n", l, strings.Repeat(" ", max(width-safetext.Width(l), 0)))
	}
	if cursor != nil {
		fmt.Fprintf(&s, "cursor %d,%d\n", cursor.X, cursor.Y)
	}
	return s.String()
}

// CheckWidth fails if a line is wider than width.
func CheckWidth(t testing.TB, lines []string, width int) {
	t.Helper()
	for _, l := range lines {
		if w := safetext.Width(l); w > width {
			t.Errorf("%d columns in a width of %d: %q", w, width, l)
		}
		if strings.ContainsAny(l, "\n\r\t") {
			t.Errorf("a line holds a control character: %q", l)
		}
	}
}

// Golden compares text with testdata/name.golden. Escape sequences are written as
// \e so that a diff can be read.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", `\e`)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
