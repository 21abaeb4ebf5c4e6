package composer

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestCommandPopup(t *testing.T) {
	d := newDesk(t).write("/")
	if n := len(d.c.Popup(80)); n != 6 {
		t.Errorf("%d commands are offered, want 6", n)
	}
	d.write("re").press("tab")
	d.wantText("/resume ")
	if d.c.Popup(80) != nil {
		t.Error("the popup is still open")
	}
	d.write("abc").press("enter")
	d.wantActions(Slash{"resume", "abc"})

	d.write("/co").press("enter") // needs no more words: done at once
	d.wantActions(Slash{"compact", ""})

	d.write("/mo").press("enter") // could take a name: written only
	d.wantText("/model ")
	d.press("enter")
	d.wantActions(Slash{"model", ""})

	d.write("/").press("down", "enter")
	d.wantActions(Slash{"new", ""})
	d.write("/").press("up", "enter")
	d.wantActions(Slash{"quit", ""})
	d.write("/ut").press("enter") // letters in order
	d.wantActions(Slash{"undo-turn", ""})
}

func TestEscClosesThePopupOnly(t *testing.T) {
	d := newDesk(t).write("/re")
	if d.press("esc"); d.last == nil || d.c.Popup(80) != nil {
		t.Error("esc did not close the popup")
	}
	if d.write("s"); d.c.Popup(80) != nil {
		t.Error("the popup came back for the same word")
	}
	if d.press("esc"); d.last != nil {
		t.Error("the second esc was used")
	}
	d.press("ctrl+u").write("/")
	if d.c.Popup(80) == nil {
		t.Error("no popup for a new word")
	}
	d.press("esc", "ctrl+u").write("hello").press("enter").write("/")
	if d.c.Popup(80) == nil {
		t.Error("no popup after sending")
	}
}

func TestFilePopup(t *testing.T) {
	d := newDesk(t).write("see @main")
	if got := d.popup(); !strings.Contains(got, "cmd/main.go") || !strings.Contains(got, "internal/main_test.go") {
		t.Fatalf("popup is\n%s", got)
	}
	d.press("down", "tab").write("and @read").press("enter")
	d.wantText(`see internal/main_test.go and "docs/read me.md" `)
	d.wantActions()
	d.press("enter")
	d.wantActions(Submit{Text: `see internal/main_test.go and "docs/read me.md"`, Mode: p.Steer})

	d.write("a@main and @nosuchfile")
	if d.c.Popup(80) != nil {
		t.Error("a popup for an address, or without proposals")
	}
	d.press("enter")
	d.wantActions(Submit{Text: "a@main and @nosuchfile", Mode: p.Steer})
}

func TestPopupFollowsTheText(t *testing.T) {
	d := newDesk(t).write("x @main").press("left")
	if d.c.Popup(80) == nil {
		t.Error("the popup closed inside its word")
	}
	d.press("tab")
	d.wantText("x cmd/main.go ") // the whole word is replaced
	d.press("ctrl+u").write("@main").press("home")
	if d.c.Popup(80) != nil {
		t.Error("the popup is open before its word")
	}
	if d.press("end"); d.c.Popup(80) != nil {
		t.Error("a mere motion opened the popup")
	}
	if d.press("backspace"); d.c.Popup(80) == nil {
		t.Error("a change did not open the popup")
	}
	d.c.SetBusy(true)
	d.press("tab") // completes, and does not queue
	d.wantActions()
}

func TestLateAnswersAboutFiles(t *testing.T) {
	d := newDesk(t)
	var wanted []bool // whether somebody still waited when a search began
	d.c.opts.Files = func(ctx context.Context, typed string) []string {
		wanted = append(wanted, ctx.Err() == nil)
		return []string{typed + ".go"}
	}
	_, first := d.c.Update(tuitest.Press("@"))
	_, second := d.c.Update(tuitest.Press("a"))
	if got := d.popup(); !strings.Contains(got, "looking for files") {
		t.Errorf("popup is %q", got)
	}
	d.update(second())
	d.update(first()) // too late
	if got := d.popup(); !strings.Contains(got, "› a.go") || strings.Contains(got, " .go") {
		t.Errorf("popup is %q", got)
	}
	if !slices.Equal(wanted, []bool{true, false}) {
		t.Errorf("searches that are wanted: %v; the first is not any more", wanted)
	}
	_, third := d.c.Update(tuitest.Press("b"))
	if got := d.popup(); !strings.Contains(got, "looking") {
		t.Errorf("a proposal that does not fit stayed: %q", got)
	}
	d.press("enter")
	d.update(third())
	if d.c.Popup(80) != nil {
		t.Error("an answer opened the popup after the message was sent")
	}
	if !slices.ContainsFunc(d.actions, func(a Action) bool { s, ok := a.(Submit); return ok && s.Text == "@ab" }) {
		t.Errorf("actions are %v", d.actions)
	}
}
