package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exists reports whether a file is in the directory that conversations work in.
func (s *server) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.work, name))
	return err == nil
}

// shows opens a conversation on a page and waits for it.
func (p *page) shows(id string) {
	p.t.Helper()
	p.do(fmt.Sprintf("location.hash = %q", "#/c/"+id))
	p.until(`location.hash === "#/c/` + id + `" && document.getElementById("title").textContent !== "…"`)
}

const (
	toasts      = `document.querySelectorAll(".toast").length`
	yes         = `[data-decision=approved]`
	notAnswered = `!!document.querySelector("#approvals section")`
)

// Two conversations have the same turns and calls, and a page that can be cut off.
type twins struct {
	t    *testing.T
	s    *server
	x    *proxy
	p    *page
	a, b string
}

func newTwins(t *testing.T) *twins {
	t.Helper()
	s := newServer(t, "-a", "untrusted", "--http=127.0.0.2:0", "--http-name", "127.0.0.1")
	w := &twins{t: t, s: s, x: newProxy(t, s)}
	w.p = newBrowser(t).open(s.link, desktop())
	begin := func(name string) string {
		w.p.begin("write " + name + ".txt: text of " + name)
		w.p.sees("Allow these changes?")
		w.p.press(yes)
		w.p.ready()
		w.p.say("run: touch victim"+name, "#send")
		w.p.sees("Allow this command?")
		return w.p.id()
	}
	w.a, w.b = begin("A"), begin("B")
	return w
}

// cutOff lets nothing through until mended.
func (w *twins) cutOff() {
	w.t.Helper()
	w.x.cut()
	w.p.sees("Not connected")
}

func (w *twins) mend() {
	w.t.Helper()
	w.x.mend()
	w.p.until(`document.getElementById("banner").hidden`)
}

// pressed presses something for A while the page is cut off, and goes to B.
func (w *twins) pressed(what string, press func()) {
	w.t.Helper()
	w.p.shows(w.a)
	w.p.until(notAnswered)
	w.cutOff()
	press()
	w.p.sees("Not sent to")
	w.p.do(fmt.Sprintf("location.hash = %q", "#/c/"+w.b))
	w.p.until(toasts + " === 0")
	w.mend()
	w.p.until(`document.getElementById("title").textContent.includes("write B.txt")`)
	w.p.until(notAnswered)
	if n := eval[int](w.p, toasts); n != 0 {
		w.t.Errorf("%s: %d toasts of another conversation are on the page", what, n)
	}
}

// What is pressed for one conversation never reaches another: an answer, a message, an undo, a fork and an archive of one are
// pressed while the page is cut off, and then the other is on the page.
func TestNothingGoesAstray(t *testing.T) {
	w := newTwins(t)
	s, p := w.s, w.p
	w.pressed("an answer", func() { p.press(yes) })
	w.pressed("a fork", func() { p.do(`document.querySelector("[data-act=fork]").click()`) })
	w.pressed("an archive", func() { p.do(`document.querySelector("[data-act=archive]").click()`) })
	if s.exists("victimA") || s.exists("victimB") {
		t.Fatal("a command ran that nobody approved")
	}

	// The same answer, sent again where it was pressed, arrives there.
	p.shows(w.a)
	p.until(notAnswered)
	w.cutOff()
	p.press(yes)
	p.sees("Not sent to")
	w.mend()
	p.do(`document.querySelector(".toast button").click()`)
	eventually(t, "the command of A runs", func() bool { return s.exists("victimA") })
	p.ready()
	if s.exists("victimB") {
		t.Error("the command of B ran")
	}
	w.message()

	// The question whether to undo goes away with its conversation.
	p.click("[data-act=undo]")
	p.sees("Undo turn 1?")
	p.do(fmt.Sprintf("location.hash = %q", "#/c/"+w.b))
	p.until(notAnswered)
	if eval[bool](p, `document.getElementById("dialog").open`) {
		t.Error("the dialog of A is open over B")
	}
	if !s.exists("A.txt") || !s.exists("B.txt") {
		t.Error("a turn was undone that nobody confirmed")
	}
	p.noProblems()
}

// message writes one for A while the page is cut off: it stays there, marked as not sent, and is sent from there once.
func (w *twins) message() {
	w.t.Helper()
	p := w.p
	w.cutOff()
	p.put("talk 13", "#send")
	p.until(`document.querySelectorAll("#unsent li").length === 1`)
	p.do(fmt.Sprintf("location.hash = %q", "#/c/"+w.b))
	p.until(`document.querySelectorAll("#unsent li").length === 0 && document.getElementById("composer").value === ""`)
	w.x.mend()
	p.until(notAnswered)
	p.shows(w.a)
	p.do(`document.querySelector("#unsent button").click()`)
	p.sees("word13")
	p.ready()
	p.until(`document.querySelectorAll("#unsent li").length === 0`)
	if n := strings.Count(journal(w.t, w.s, w.a), `"text":"talk 13"`); n != 1 {
		w.t.Errorf("A has the message %d times", n)
	}
	if strings.Contains(journal(w.t, w.s, w.b), "talk 13") {
		w.t.Error("B has the message for A")
	}
}
