package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// running reports whether a process has a word in its command line.
func running(word string) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, d := range dirs {
		if data, err := os.ReadFile(d); err == nil && strings.Contains(string(data), word) && !strings.Contains(string(data), "web.test") {
			return true
		}
	}
	return false
}

// eventually waits for something outside of the page.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(*bound)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

func TestStreamStopSteer(t *testing.T) {
	s := newServer(t, "-a", "never")
	p := newBrowser(t).open(s.link, desktop())
	p.begin("talk 10")
	p.sees("word10")
	p.ready()

	word := fmt.Sprintf("88%d", os.Getpid())
	p.say("run: sleep "+word+" & sleep "+word+"; echo never", "#send")
	eventually(t, "the command runs", func() bool { return running(word) })
	p.until(`document.getElementById("send").textContent === "Steer"`)
	p.say("talk 3", "#send")
	p.sees("steering")
	p.say("later", "[data-act=queue]")
	p.sees("queued")
	p.click("#queue li:last-child [data-act=delete-input]")
	p.until(`document.querySelectorAll("#queue li").length === 1`)
	p.click("#queue [data-act=edit-input]")
	p.until(`document.getElementById("composer").value === "talk 3"`)
	p.put("talk 4", "#send")
	p.until(`document.querySelector("#queue .words").textContent === "talk 4"`)
	p.click("#stop")
	p.sees("interrupted after")
	eventually(t, "the processes are gone", func() bool { return !running(word) })
	p.sees("not delivered")
	p.click("#returned [data-act=edit-returned]")
	p.until(`document.getElementById("composer").value === "talk 4"`)
	p.until(`document.querySelectorAll("#returned li").length === 0`)
	p.click("#send")
	p.sees("word4")
	p.ready()

	p.say("wait 1000", "#send")
	p.until(`document.body.classList.contains("running")`)
	p.put("talk 2", "[data-act=replace]")
	p.sees("replaced after")
	p.ready()
	p.noProblems()
	p.onlyOwnRequests(s)
}

// onlyOwnRequests fails the test if the page asked anybody but its server.
func (p *page) onlyOwnRequests(s *server) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if !strings.HasPrefix(r, s.origin()+"/") && !strings.HasPrefix(r, "data:") {
			p.t.Errorf("the page asked for %s", r)
		}
	}
}

func TestApproveDenyUndo(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "untrusted")
	p := newBrowser(t).open(s.link, desktop())
	p.begin("run: echo approved-$((1+1)) > out.txt; cat out.txt")
	p.sees("Allow this command?")
	p.shoot("approval")
	p.press(`[data-decision=approved]`)
	p.sees("approved-2")
	p.ready()

	p.say("run: touch denied", "#send")
	p.sees("Allow this command?")
	p.press(`[data-decision=denied]`)
	p.do(`document.querySelector("#approvals input").value = "not today"`)
	p.click("#approvals .primary")
	p.sees("declined")
	p.ready()
	if _, err := os.Stat(filepath.Join(s.work, "denied")); err == nil {
		t.Error("a denied command ran")
	}

	p.say("write note.txt: hello from the page", "#send")
	p.sees("Allow these changes?")
	p.sees("+hello from the page")
	p.do(`document.getElementById("composer").focus()`)
	p.run(chromedp.KeyEvent("y")) // somebody is typing: this is no answer
	p.until(`document.getElementById("composer").value === "y" && !!document.querySelector("#approvals section")`)
	p.do(`(() => { const c = document.getElementById("composer"); c.value = ""; c.blur(); })()`)
	p.until(`!document.querySelector("[data-decision=approved]").disabled`)
	p.run(chromedp.KeyEvent("y"))
	p.until(`!document.querySelector("#approvals section")`)
	p.ready()
	if data, err := os.ReadFile(filepath.Join(s.work, "note.txt")); err != nil || !strings.Contains(string(data), "hello") {
		t.Errorf("note.txt: %q, %v", data, err)
	}
	p.click("[data-act=diff]")
	p.sees("What turn 3 changed")
	p.shoot("diff")
	p.click("#dialog .answers button")
	p.click("[data-act=undo]")
	p.sees("Undo turn 3?")
	p.click("#dialog .danger")
	p.sees("Turn 3 was undone")
	if _, err := os.Stat(filepath.Join(s.work, "note.txt")); err == nil {
		t.Error("note.txt is still there")
	}
	p.noProblems()
}

func TestBackground(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "never")
	p := newBrowser(t).open(s.link, desktop())
	word := fmt.Sprintf("77%d", os.Getpid())
	p.begin("start: echo begun; sleep " + word)
	p.sees("continues in the background")
	p.ready()
	p.click("[data-act=kill]")
	eventually(t, "the command is gone", func() bool { return !running(word) })
	p.until(`document.querySelectorAll("#background li").length === 0`)
	p.noProblems()
}

// What the screenshots of the documentation show.
func TestScreenshots(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "untrusted")
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.begin("write hello.go: package main // says hello")
	p.sees("Allow these changes?")
	p.press(`[data-decision=approved]`)
	p.ready()
	story := "## What I found\n\nThe test fails because `Close` is called **twice**:\n\n```go\nfunc (c *Conn) Close() error {\n\tif c.closed { // second call\n\t\treturn ErrClosed\n\t}\n\tc.closed = true\n\treturn c.conn.Close()\n}\n```\n\n| file | change |\n|-|-|\n| conn.go | returns nil |\n| conn_test.go | a test for it |\n\n- [x] reproduce\n- [ ] mend\n"
	if err := os.WriteFile(filepath.Join(s.work, "notes.md"), []byte(story), 0o600); err != nil {
		t.Fatal(err)
	}
	p.say("run: cat notes.md", "#send")
	p.sees("conn_test.go")
	p.ready()
	p.say("run: for i in 1 2 3; do echo step $i; done; go test ./...", "#send")
	p.sees("Allow this command?")
	const drawn = `!document.querySelector("[data-decision=approved]").disabled && !!document.querySelector("#list em")`
	p.until(`document.getElementById("scroll").scrollTop > 0`)
	p.until(drawn)
	p.shoot("desktop")
	p.run(dark())
	p.shoot("dark")
	id := p.id()
	m := b.open(s.origin()+"/#/c/"+id, phone())
	m.sees("Allow this command?")
	m.firstContent(s)
	m.until(drawn)
	m.shoot("phone")
	if eval[bool](m, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than the phone")
	}
	m.click(".back")
	m.until(`getComputedStyle(document.getElementById("side")).display !== "none"`)
	m.shoot("phone-list")
	m.noProblems()
	p.noProblems()
}

// firstContent fails the test if the page needed more than itself and one request to show something.
func (p *page) firstContent(s *server) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	own := map[string]bool{"/": true, "/icon.svg": true, "/app.webmanifest": true, "/api/v1/view": true, "/api/v1/session": true, "/api/v1/hello": true}
	for _, r := range p.requests {
		path, _, _ := strings.Cut(strings.TrimPrefix(r, s.origin()), "#")
		path, _, _ = strings.Cut(path, "?")
		if !own[path] {
			p.t.Errorf("the page asked for %s", r)
		}
	}
}
