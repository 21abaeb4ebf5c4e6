package composer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestUpAndDownGoThroughTheHistory(t *testing.T) {
	d := newDesk(t, "first", "second\nof two lines", "third")
	d.write("draft")
	for _, step := range []struct{ key, want string }{
		{"up", "third"},
		{"up", "second\nof two lines"},
		{"up", "first"}, // not the first line of the second: nobody moved in it
		{"up", "first"},
		{"down", "second\nof two lines"},
		{"down", "third"},
		{"down", "draft"},
		{"down", "draft"},
	} {
		d.press(step.key)
		d.wantText(step.want)
	}
	d.press("up", "up", "left", "up") // after a motion Up is a motion, too
	d.wantText("second\nof two lines")
	d.press("up") // and now it is on the first line
	d.wantText("third")
	d.press("down") // what was changed or moved in is the draft now
	d.wantText("second\nof two lines")
}

func TestDraftKeepsItsFolds(t *testing.T) {
	d := newDesk(t, "old").paste(strings.Repeat("x\n", 20)).press("up", "down")
	d.wantText(strings.Repeat("x\n", 20))
	if lines, _ := d.c.View(80, 9); len(lines) != 3 {
		t.Error("the paste is not folded any more")
	}
}

func TestHistoryRemembersWhatWasSent(t *testing.T) {
	d := newDesk(t, "old")
	for _, s := range []string{"one", "one", "!ls", "/new"} {
		d.write(s).press("esc", "enter")
	}
	want := []string{"old", "one", "!ls", "/new"}
	if diff := cmp.Diff(want, d.history.entries); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	d.press("up", "up", "up")
	d.wantText("one")
}

func TestHistoryThatArrivesLate(t *testing.T) {
	d := newDesk(t)
	d.history.entries = []string{"from the file"}
	load := d.c.Init()
	msg := load()
	d.write("sent before it was loaded").press("enter")
	d.update(msg)
	d.press("up")
	d.wantText("sent before it was loaded")
	d.press("up")
	d.wantText("from the file")
}

func TestSearch(t *testing.T) {
	d := newDesk(t, "fix the parser", "run tests", "Fix the lexer\nand the parser", "run tests", "unrelated")
	d.write("draft").press("ctrl+r").write("the p")
	if diff := cmp.Diff([]int{2, 0}, d.c.search.matches); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	d.wantText("draft") // until it is taken
	d.press("ctrl+r", "ctrl+r", "enter")
	d.wantText("fix the parser")
	d.wantActions()
	d.press("ctrl+_")
	d.wantText("draft")

	d.press("ctrl+r").write("tests").press("ctrl+r") // the same entry is found once
	if n := len(d.c.search.matches); n != 1 {
		t.Errorf("%d matches, want 1", n)
	}
	if d.press("esc"); d.last == nil {
		t.Error("esc ended the search and was not used")
	}
	d.wantText("draft")

	d.press("ctrl+r").write("Fix").press("enter") // capitals are meant
	d.wantText("Fix the lexer\nand the parser")
}

func TestSearchEdges(t *testing.T) {
	d := newDesk(t, "alpha beta", "gamma")
	d.press("ctrl+r").write("alphx").press("backspace").paste(" be\nta")
	d.press("ctrl+u").write("beta").press("ctrl+e").write("!") // a key for the text takes the match
	d.wantText("alpha beta!")
	d.press("enter")
	d.wantActions(Submit{Text: "alpha beta!", Mode: p.Steer})

	d.write("keep").press("ctrl+r").write("nothing like it").press("enter")
	d.wantText("keep")
	d.press("ctrl+r").write("gam").press("up", "down", "ctrl+s", "ctrl+g")
	d.wantText("keep")
	if d.press("ctrl+r", "ctrl+c"); d.last != nil {
		t.Error("ctrl-c belongs to the application, in a search, too")
	}
}
