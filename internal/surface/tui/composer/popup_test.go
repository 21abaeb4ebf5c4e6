package composer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

func TestLongPopupScrolls(t *testing.T) {
	d := newDesk(t)
	d.c.opts.Files = func(context.Context, string) []string {
		var many []string
		for i := range 20 {
			many = append(many, fmt.Sprintf("file%d", i))
		}
		return many
	}
	d.write("@f")
	seen := func() (first, selected, last string) {
		lines := d.c.Popup(40)
		if len(lines) != popupLines {
			t.Fatalf("%d lines, want %d", len(lines), popupLines)
		}
		for _, l := range lines {
			if l = strings.TrimSpace(ansi.Strip(l)); strings.HasPrefix(l, "›") {
				selected = strings.TrimSpace(strings.TrimPrefix(l, "›"))
			}
		}
		trim := func(l string) string { return strings.TrimSpace(strings.Trim(ansi.Strip(l), "› ")) }
		return trim(lines[0]), selected, trim(lines[len(lines)-1])
	}
	for _, step := range []struct {
		keys string
		want []string
	}{
		{"", []string{"file0", "file0", "file7"}},
		{"down down down down down down down", []string{"file0", "file7", "file7"}},
		{"down", []string{"file1", "file8", "file8"}},
		{"ctrl+p ctrl+n", []string{"file1", "file8", "file8"}},
		{"home", nil},
	} {
		d.press(strings.Fields(step.keys)...)
		if step.want == nil {
			if d.c.Popup(40) != nil {
				t.Error("the popup is open before its word")
			}
			continue
		}
		first, selected, last := seen()
		if diff := cmp.Diff(step.want, []string{first, selected, last}); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", step.keys, diff)
		}
	}
	d.press("ctrl+u").write("@f").press("up") // round to the last
	if _, selected, _ := seen(); selected != "file19" {
		t.Errorf("selected %s", selected)
	}
}

func TestSelectedProposalIsSeenInLittleRoom(t *testing.T) {
	d := newDesk(t).write("/")
	for i := range 8 {
		for height := range 12 {
			lines := d.c.PopupIn(40, height)
			if len(lines) != min(height, 6) {
				t.Errorf("%d lines in a height of %d", len(lines), height)
			}
			if height > 0 && !strings.Contains(strings.Join(lines, "\n"), "› /") {
				t.Errorf("proposal %d is not seen in a height of %d", i, height)
			}
		}
		d.press("down")
	}
}

func TestLongNamesInThePopup(t *testing.T) {
	d := newDesk(t)
	d.c.opts.Files = func(context.Context, string) []string {
		return []string{"a/very/long/way/down/to/the/file-that-is-meant.go", "漢字/漢字/漢字/漢字/漢字/漢字/漢字/漢字/漢字/終.txt", "evil\x1b[31m.txt"}
	}
	d.write("@x")
	lines := d.c.Popup(30)
	tuitest.CheckWidth(t, lines, 30)
	for i, want := range []string{"file-that-is-meant.go", "終.txt", "evil.txt"} { // a path's end says most
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q in it", i, lines[i], want)
		}
	}
}

func TestTextIsNeverLost(t *testing.T) {
	d := newDesk(t).write("precious")
	d.c.SetText("")
	d.press("ctrl+_")
	d.wantText("precious")

	d.c.SetText("from the editor")
	d.press("ctrl+_")
	d.wantText("precious")

	d.press("ctrl+r").write("x")
	d.c.Blur() // a dialog opens in the middle of a search
	d.c.Focus()
	d.wantText("precious")
	if lines, _ := d.c.View(60, 5); strings.Contains(strings.Join(lines, ""), "search") {
		t.Error("the search is still open")
	}

	d.press("ctrl+u").write("/re")
	d.c.Blur()
	if d.c.Popup(60) != nil {
		t.Error("the popup is open without the focus")
	}
	d.c.Focus()
	d.c.Insert("sume")
	d.wantText("/resume")
}

func TestOldEntriesAreForgotten(t *testing.T) {
	var many []string
	for i := range maxPast + 50 {
		many = append(many, fmt.Sprint(i))
	}
	d := newDesk(t, many...)
	if n := len(d.c.past.entries); n != maxPast {
		t.Errorf("%d entries are kept, want %d", n, maxPast)
	}
	for i := range 250 {
		d.c.remember(fmt.Sprintf("new %d", i))
	}
	n := len(d.c.past.entries)
	if n > maxPast+100 || d.c.past.entries[n-1] != "new 249" || d.history.entries[0] != "0" {
		t.Errorf("%d entries, the last is %q", n, d.c.past.entries[n-1])
	}
}

func TestWithoutHistoryAndFiles(t *testing.T) {
	c := New(nil, Options{})
	if c.Init() != nil {
		t.Error("a history is loaded that is not there")
	}
	for _, key := range []string{"@", "a", "enter", "up", "ctrl+r", "a", "enter", "/", "enter"} {
		_, cmd := c.Update(tuitest.Press(key))
		if cmd != nil {
			t.Errorf("%s asks for something", key)
		}
		lines, _ := c.View(40, 5)
		tuitest.CheckWidth(t, lines, 40)
	}
}
