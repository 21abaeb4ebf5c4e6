package web

import (
	"fmt"
	"strings"
	"testing"
)

// 104 conversations: all can be reached, found by a word of their text, and filtered; one can be archived and brought back.
func TestLongList(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "untrusted")
	a := newAPI(t, s)
	var first struct{ ID string }
	a.do("POST", "/conversations", map[string]string{"prompt": "run: touch waits"}, &first)
	for i := range 103 {
		if i%40 == 39 { // a session may not ask for so much at once
			a = newAPI(t, s)
		}
		var c struct{ ID string }
		a.do("POST", "/conversations", map[string]string{}, &c)
		a.do("POST", "/conversations/"+c.ID+"/ops", map[string]any{"kind": "rename", "body": map[string]string{"title": fmt.Sprintf("conversation %03d", i)}}, nil)
	}
	p := newBrowser(t).open(s.link, desktop())
	p.until(`document.querySelectorAll("#lists a").length >= 60 && !document.getElementById("more").hidden`)
	p.click("#more")
	p.until(`document.querySelectorAll("#lists a").length === 104 && document.getElementById("more").hidden`)
	p.shoot("list")
	find := func(text string) {
		t.Helper()
		p.do(fmt.Sprintf(`(() => { const s = document.getElementById("search"); s.value = %q; s.dispatchEvent(new Event("input")); })()`, text))
	}
	find("ation 042")
	p.until(`document.querySelectorAll("#lists a").length === 1`)
	find("touch waits")
	p.until(`document.querySelectorAll("#lists a").length === 1 && document.querySelector("#lists a").dataset.conversation === "` + first.ID + `"`)
	find("no such thing")
	p.sees("No conversation is like that")
	find("")
	p.until(`document.querySelectorAll("#lists a").length >= 60`)
	choose := func(id, value string) {
		t.Helper()
		p.do(fmt.Sprintf(`(() => { const s = document.getElementById(%q); s.value = %q; s.dispatchEvent(new Event("input")); })()`, id, value))
	}
	choose("state", "waiting")
	p.until(`document.querySelectorAll("#lists a").length === 1`)
	p.click("#lists a")
	p.sees("Allow this command?")
	p.press(`[data-decision=denied]`)
	p.click("#approvals .primary")
	p.ready()
	p.click("#archive")
	p.until(`location.hash === "#/"`)
	choose("state", "archived")
	p.until(`document.querySelectorAll("#lists a[data-archived]").length === 1`)
	p.click("#lists a")
	p.until(`document.getElementById("archive").textContent === "Unarchive"`)
	p.click("#archive")
	p.until(`document.querySelectorAll("#lists a").length === 0`)
	p.noProblems()
}

// What is written and what could not be sent is there after a reload, another conversation, and a restart of the server.
func TestDraftsAreKept(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "never")
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.begin("talk 2")
	p.ready()
	one := p.id()
	write := func(text string) {
		t.Helper()
		p.do(fmt.Sprintf(`(() => { const c = document.getElementById("composer"); c.value = %q; c.dispatchEvent(new Event("input")); })()`, text))
	}
	write("a draft of one")
	p.begin("talk 3")
	p.ready()
	p.until(`document.getElementById("composer").value === ""`)
	p.shows(one)
	p.until(`document.getElementById("composer").value === "a draft of one"`)
	p.reload()
	p.until(`document.readyState === "complete" && document.getElementById("composer").value === "a draft of one"`)
	p.ready()
	s.kill()
	p.sees("Not connected")
	p.do(`document.getElementById("send").click()`)
	p.until(`document.querySelectorAll("#unsent li").length === 1`)
	s.start()
	p.until(`document.getElementById("banner").hidden`)
	p.reload()
	p.until(`document.readyState === "complete" && document.querySelectorAll("#unsent li").length === 1`)
	p.do(`document.querySelector("#unsent button").click()`)
	p.until(`document.querySelectorAll("#unsent li").length === 0`)
	eventually(t, "the message arrives", func() bool { return strings.Contains(journal(t, s, one), `"text":"a draft of one"`) })
	p.ready()
	if n := strings.Count(journal(t, s, one), `"text":"a draft of one"`); n != 1 {
		t.Errorf("it arrived %d times", n)
	}
	p.noProblems()
}

// The buttons of a long approval are in sight on a phone, large enough, and no toast covers them.
func TestLongApprovalOnAPhone(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "untrusted")
	p := newBrowser(t).open(s.link, phone())
	p.begin("run: touch x; " + strings.Repeat("echo a long line of a long command; ", 80))
	p.sees("Allow this command?")
	p.shoot("long-approval")
	p.do(`document.querySelector("[data-act=theme]").click()`)
	low := eval[string](p, `[...document.querySelectorAll("#approvals button")].map(b => b.getBoundingClientRect()).filter(r => r.bottom > innerHeight || r.top < 0 || r.height < 44).map(r => JSON.stringify(r)).join("\n")`)
	if low != "" {
		t.Errorf("buttons are out of sight or too small:\n%s", low)
	}
	small := eval[string](p, `[...document.querySelectorAll("button, a.back, summary, input, select")].filter(e => e.offsetParent && e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 120)).join("\n")`)
	if small != "" {
		t.Errorf("targets are too small:\n%s", small)
	}
	if eval[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than the phone")
	}
	p.noProblems()
}
