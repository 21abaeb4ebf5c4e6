package web

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// A page is cut off while hundreds of events pass, and then shows each command once. A button that is
// pressed meanwhile says that nothing was sent.
func TestCutOffAndBack(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "never", "--http=127.0.0.2:0", "--http-name", "127.0.0.1")
	x := newProxy(t, s)
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.begin("talk 3")
	p.sees("word3")
	p.ready()
	const steps = 42
	p.say("run: while [ ! -e go ]; do sleep 0.1; done; echo begun", "#send")
	p.until(`document.body.classList.contains("running")`)
	for i := range steps {
		p.say(fmt.Sprintf("run: echo step-%d-end", i), "[data-act=queue]")
		p.until(fmt.Sprintf(`document.querySelectorAll("#queue li").length === %d`, i+1))
	}
	x.cut()
	p.sees("Not connected")
	p.click("#stop")
	p.sees("“Stop”. fermata cannot be reached")
	p.do(`document.querySelector(".toast button:last-child").click()`)
	before := events(t, s, p.id())
	if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all turns end while the page is cut off", func() bool { return ended(t, s, p.id(), steps+2) })
	if n := events(t, s, p.id()) - before; n < 500 {
		t.Errorf("only %d events passed", n)
	}
	x.mend()
	p.sees(fmt.Sprintf("step-%d-end", steps-1))
	p.until(`document.getElementById("banner").hidden`)
	p.ready()
	for i := range steps {
		js := fmt.Sprintf(`[...document.querySelectorAll(".item.call .cmd")].filter(e => e.textContent.includes("step-%d-end")).length`, i)
		if n := eval[int](p, js); n != 1 {
			t.Errorf("command %d is shown %d times", i, n)
		}
	}
	fresh := b.open(s.origin() + "/#/c/" + p.id())
	fresh.sees(fmt.Sprintf("step-%d-end", steps-1))
	fresh.ready()
	items := `[...document.querySelectorAll("#items > .item")].map(e => e.textContent).join("\n")`
	was, is := eval[string](p, items), eval[string](fresh, items)
	if !strings.HasSuffix(was, is) && was != is {
		t.Errorf("a page that was cut off shows\n%s\na fresh one\n%s", was, is)
	}
	p.noProblems()
}

// events counts those of a conversation.
func events(t *testing.T, s *server, id string) int {
	t.Helper()
	return strings.Count(journal(t, s, id), `{"n":`)
}

// ended reports whether a turn has ended.
func ended(t *testing.T, s *server, id string, turn int) bool {
	t.Helper()
	for line := range strings.Lines(journal(t, s, id)) {
		if strings.Contains(line, fmt.Sprintf(`"turn":%d,`, turn)) && strings.Contains(line, `"kind":"turn_ended"`) {
			return true
		}
	}
	return false
}

// journal is the text of a conversation's file: its whole lines, as a kill may leave a part of one, which is dropped.
func journal(t *testing.T, s *server, id string) string {
	t.Helper()
	out, err := s.fermata("list", "--json").Output()
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	for _, word := range strings.FieldsFunc(string(out), func(r rune) bool { return r == '"' || r == ' ' || r == '\n' }) {
		if strings.HasSuffix(word, ".jsonl") && strings.Contains(word, id) {
			data, err := os.ReadFile(word)
			if err != nil {
				t.Fatal(err)
			}
			return string(data[:bytes.LastIndexByte(data, '\n')+1])
		}
	}
	t.Fatalf("there is no journal of %s in %s", id, out)
	return ""
}

// The server is killed in the middle of a turn. The page says that it is not connected, finds the new server by itself
// and shows how the turn ended.
func TestServerIsKilled(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "never")
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.begin("talk 2")
	p.ready()
	p.say("run: echo before-the-crash; sleep 1000", "#send")
	p.until(`[...document.querySelectorAll(".out")].some(e => e.textContent.includes("before-the-crash"))`)
	eventually(t, "the output is in the journal", func() bool { return strings.Contains(journal(t, s, p.id()), `"text":"before-the-crash`) })
	s.kill()
	p.sees("Not connected")
	s.start()
	p.sees("crashed after")
	p.until(`document.getElementById("banner").hidden`)
	p.ready()
	if n := eval[int](p, `[...document.querySelectorAll(".out")].filter(e => e.textContent.includes("before-the-crash")).length`); n != 1 {
		t.Errorf("the output is shown %d times", n)
	}
	p.say("talk 4", "#send")
	p.sees("word4")
	p.ready()
	p.noProblems()
}

// Two pages and the terminal UI have one conversation; each can stop and answer.
func TestTwoPagesAndATerminal(t *testing.T) {
	notShort(t)
	s := newServer(t, "-a", "untrusted")
	b := newBrowser(t)
	one := b.open(s.link, desktop())
	one.begin("run: sleep 1000")
	one.sees("Allow this command?")
	two := b.open(s.origin()+"/#/c/"+one.id(), phone())
	two.sees("Allow this command?")

	tui := s.fermata("resume", one.id())
	tui.Env = append(tui.Env, "TERM=xterm-256color")
	f, err := pty.StartWithSize(tui, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close(); _ = tui.Process.Kill(); _ = tui.Wait() }()
	screen := make(chan string, 1000)
	go func() { // ends with the terminal
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			if err != nil {
				close(screen)
				return
			}
			screen <- string(buf[:n])
		}
	}()
	var shown strings.Builder
	for !strings.Contains(shown.String(), "Allow this command?") {
		text, ok := <-screen
		if !ok {
			t.Fatalf("the terminal UI ended:\n%q", shown.String())
		}
		shown.WriteString(text)
	}
	go func() { // ends with the terminal
		for range screen {
		}
	}()
	two.press("[data-decision=approved]")
	one.until(`document.querySelectorAll("#approvals section").length === 0`)
	one.until(`document.body.classList.contains("running")`)
	if _, err := f.WriteString("\x1b"); err != nil { // Esc in the terminal stops it for all
		t.Fatal(err)
	}
	one.sees("interrupted after")
	two.sees("interrupted after")
	one.ready()
	two.ready()
	one.noProblems()
	two.noProblems()
}
