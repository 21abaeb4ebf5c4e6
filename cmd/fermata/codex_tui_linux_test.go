package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// codexDir is where Codex's own terminal client is, unchanged and pinned.
const codexDir = "../../e2e/codex-tui"

// installCodex fetches the client, if it is not there, once, and returns its path.
var installCodex = sync.OnceValues(func() (string, error) {
	if !longtest.On() {
		return "", longtest.ErrOff
	}
	for _, name := range []string{"node", "npm", "tmux"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("%s is not installed", name)
		}
	}
	codex, err := filepath.Abs(filepath.Join(codexDir, "node_modules", ".bin", "codex"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(codex); err == nil {
		return codex, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = codexDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return codex, nil
})

// tuiPatience is how long the client may take for something.
const tuiPatience = patience

// The screen has room for 2000 words below their message: the model says them for so long that even a busy machine
// gets done what is done meanwhile.
const screenColumns, screenRows = "220", "130"

// A codexTUI is Codex's terminal client in a terminal of its own.
type codexTUI struct {
	t    *testing.T
	s    *appSite
	name string
}

// tmux runs tmux, whose server is the test's own.
func (s *appSite) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", filepath.Join(s.dir, "tmux")}, args...)...).CombinedOutput()
	return string(out), err
}

// codex starts the client.
func (s *appSite) codex(t *testing.T, name string, args ...string) *codexTUI {
	t.Helper()
	bin, err := installCodex()
	if err != nil {
		t.Skipf("Codex's terminal client is not tested: %v", err)
	}
	home := filepath.Join(s.dir, "codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("cd %s; export CODEX_HOME=%s HOME=%s; %s %s --remote unix://%s; echo exit code $?; read x", s.work, home, home, bin, strings.Join(args, " "), s.socket)
	if out, err := s.tmux("-f", "/dev/null", "new-session", "-d", "-s", name, "-x", screenColumns, "-y", screenRows, line); err != nil {
		t.Skipf("Codex's terminal client is not tested: tmux: %v %s", err, out)
	}
	c := &codexTUI{t, s, name}
	c.until("Ask Codex to do anything")
	return c
}

func (c *codexTUI) screen() string {
	out, err := c.s.tmux("capture-pane", "-p", "-t", c.name)
	if err != nil {
		c.t.Fatalf("tmux: %v %s", err, out)
	}
	return out
}

func (c *codexTUI) key(keys ...string) {
	c.t.Helper()
	if out, err := c.s.tmux(append([]string{"send-keys", "-t", c.name}, keys...)...); err != nil {
		c.t.Fatalf("tmux: %v %s", err, out)
	}
}

// until waits until the screen shows a text.
func (c *codexTUI) until(text string) {
	c.t.Helper()
	c.untilAll(text)
}

func (c *codexTUI) untilAll(texts ...string) {
	c.t.Helper()
	deadline := time.Now().Add(tuiPatience)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		screen, missing := c.screen(), ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			tick.Stop()
			return
		}
		if strings.Contains(screen, "exit code ") || time.Now().After(deadline) {
			c.t.Fatalf("%s: waited in vain for %q\n%s\nthe server:\n%s", c.name, missing, screen, c.s.server.err.String())
		}
	}
}

// press presses a key until the screen is as it should be: the client ignores keys for a moment after it has drawn something new,
// and takes an Enter right behind a text for a part of what was pasted.
func (c *codexTUI) press(key string, done func(screen string) bool) {
	c.t.Helper()
	deadline := time.Now().Add(tuiPatience)
	for n := 0; ; n++ {
		screen := c.screen()
		if done(screen) {
			return
		}
		if strings.Contains(screen, "exit code ") || time.Now().After(deadline) {
			c.t.Fatalf("%s: %s has no effect\n%s\nthe server:\n%s", c.name, key, screen, c.s.server.err.String())
		}
		if n%40 == 0 && key != "" {
			c.key(key)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// pressFor presses a key until the screen shows a text.
func (c *codexTUI) pressFor(key, text string) {
	c.t.Helper()
	c.press(key, func(screen string) bool { return strings.Contains(screen, text) })
}

// say types a message, sends it, and waits for what the screen shows below it.
func (c *codexTUI) say(text, below string) {
	c.t.Helper()
	c.key("-l", text)
	for c.until(text); !strings.Contains(c.screen(), "› "+text); c.until("› " + text) {
		c.key("C-u") // a key that was pressed twice, because the first had no effect for long, is before it
		c.key("-l", text)
	}
	c.press("Enter", func(screen string) bool {
		return strings.Contains(screen, "Ask Codex") || strings.Contains(screen, "Would you like")
	})
	c.below(text, below)
}

// escape presses Esc until the screen shows a text below another one, and not again at once: Esc means something else when nothing runs.
func (c *codexTUI) escape(text, below string) {
	c.t.Helper()
	n := 0
	c.press("", func(screen string) bool {
		_, rest, ok := strings.Cut(screen, text)
		if ok && strings.Contains(rest, below) {
			return true
		}
		if n%300 == 0 { // every 15 s
			c.key("Escape")
		}
		n++
		return false
	})
}

// below waits until the screen shows a text below another one.
func (c *codexTUI) below(text, below string) {
	c.t.Helper()
	deadline := time.Now().Add(tuiPatience)
	for {
		screen := c.screen()
		if _, rest, ok := strings.Cut(screen, text); ok && strings.Contains(rest, below) {
			return
		}
		if strings.Contains(screen, "exit code ") || time.Now().After(deadline) {
			c.t.Fatalf("%s: waited in vain for %q below %q\n%s\nthe server:\n%s", c.name, below, text, screen, c.s.server.err.String())
		}
		<-time.After(50 * time.Millisecond)
	}
}

// approve answers the dialog with yes.
func (c *codexTUI) approve() {
	c.t.Helper()
	c.press("y", func(screen string) bool { return !strings.Contains(screen, "Would you like to run") })
}

// Codex's own terminal client, unmodified, drives the server.
func TestCodexTUI(t *testing.T) {
	t.Parallel()
	if _, err := installCodex(); err != nil {
		t.Skipf("Codex's terminal client is not tested: %v", err)
	}
	s := newAppSite(t, "-c", `approval_policy="untrusted"`)
	t.Cleanup(func() { _, _ = s.tmux("kill-server") })
	a := s.codex(t, "a")

	// A tool call with an approval, and its output.
	a.say("run: echo o''ne > made; cat made", "Would you like to run the following command?")
	a.approve()
	a.untilAll("Ran echo", "[demo] It printed:", "one")

	// A stream, and a steer. Esc sends it at once: the client interrupts the turn, and sends it again as a message.
	a.say("talk 2000", "word5 ")
	a.say("a steer of mine", "")
	a.until("Messages to be submitted")
	a.escape("a steer of mine", "I understand:")

	// Esc in a command.
	a.say("run: echo be''gun; sleep 634", "Would you like to run the following command?")
	a.approve()
	a.until("begun\n")
	a.escape("sleep 634", "Conversation interrupted")
	eventually(t, "nothing of the command runs", func() bool {
		for _, r := range processes() {
			if r.name == "sleep" && touches(r.pid, s.work) {
				return false
			}
		}
		return true
	})

	// A second client on the same thread, found by the picker, in the middle of a turn.
	a.say("talk 2001", "word3 ")
	b := s.codexPicker(t)
	b.below("talk 2001", "word20 ")
	b.escape("talk 2001", "Conversation interrupted")
	a.below("talk 2001", "Conversation interrupted")
	api := s.connect()
	list, _ := api.result("thread/list", `{}`)["data"].([]any)
	api.thread = fmt.Sprint(within(list[0], "id"))
	eventually(t, "the turn is interrupted", func() bool {
		status, texts := itemTexts(api.result("thread/read", `{"threadId":"T","includeTurns":true}`)["thread"])
		return status == "interrupted interrupted" && strings.Contains(texts, "word20 ")
	})
	if _, rest, _ := strings.Cut(b.screen(), "talk 2001"); strings.Count(rest, "word5 ") != 1 {
		t.Errorf("the text is not there once\n%s", rest)
	}

	// The server is killed in the middle of a turn, and started again.
	a.say("talk 2002", "word12 ")
	_ = s.server.cmd.Process.Kill()
	<-s.server.done
	a.until("Reconnecting to server")
	s.serve("-c", `approval_policy="untrusted"`)
	a.below("talk 2002", "word5 ")
	a.below("talk 2002", "Conversation interrupted")
	a.say("run: echo back ag''ain", "back again")
	for _, c := range []*codexTUI{a, b} {
		c.key("C-c")
	}
}

// codexPicker resumes the last thread, chosen from the picker.
func (s *appSite) codexPicker(t *testing.T) *codexTUI {
	t.Helper()
	home := filepath.Join(s.dir, "codex")
	bin, _ := installCodex() // it was there before
	line := fmt.Sprintf("cd %s; export CODEX_HOME=%s HOME=%s; %s resume --all --remote unix://%s; echo exit code $?; read x", s.work, home, home, bin, s.socket)
	if out, err := s.tmux("new-session", "-d", "-s", "b", "-x", screenColumns, "-y", screenRows, line); err != nil {
		t.Fatalf("tmux: %v %s", err, out)
	}
	b := &codexTUI{t, s, "b"}
	b.untilAll("Resume a previous session", "echo o''ne")
	b.pressFor("Enter", "talk 2001")
	return b
}
