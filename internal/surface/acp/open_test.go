package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Whoever loads a session in the middle of a turn gets what there is, in order and before the answer, each call once; then what happens, and
// what the user is asked.
func TestLoadInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		a := x.connect()
		a.start()
		a.say("hi")
		x.command("ls").Return(p.ToolOutput{Command: &p.CommandResult{Output: "a.c\n"}})
		x.e.Request().Answer("done")
		a.until("answer 3")
		a.say("more")
		run := x.command("make")
		run.Print("cc")
		past := []string{
			"user_message u1.0.0 hi", "tool_call 1.1.0 ls execute completed \"```\\na.c\\n```\"", "agent_message 1.2.0 done",
			"user_message u2.0.0 more",
		}
		synctest.Wait()

		b := x.connect()
		b.open("session/load", a)
		b.want(append(past, "tool_call 2.1.0 make execute in_progress \"```\\ncc\\n```\"", "answer 2 ok")...)
		run.Ask("make", "install")
		b.until("permission 2.1.0 make install")

		c := x.connect()
		c.open("session/load", a)
		c.want(append(past, "tool_call 2.1.0 make install execute pending", "answer 2 ok", "permission 2.1.0 make install: approved approved_for_session allow_prefix denied abort")...)

		d := x.connect()
		d.open("session/resume", a) // nothing of the past, but what is open
		d.want("answer 2 ok", "tool_call 2.1.0 make install execute pending", "permission 2.1.0 make install: approved approved_for_session allow_prefix denied abort")

		d.send(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"selected","optionId":"approved"}}}`, d.last["id"])
		for _, other := range []*client{a, b, c} {
			other.until("withdrawn")
		}
		x.e.Run().Return(p.ToolOutput{Command: &p.CommandResult{Output: "ok\n"}})
		x.e.Request().Answer("installed")
		for _, client := range []*client{b, c, d} {
			got := client.until("agent_message 2.2.0 installed")
			if !strings.Contains(strings.Join(got, "\n"), "tool_call_update 2.1.0 completed") {
				t.Errorf("got %q", got)
			}
		}
		a.until("answer 4 end_turn")
	})
}

// What a load shows of calls is what was shown live, for a turn that ended, and for one that was killed.
func TestLoadShowsWhatWasShown(t *testing.T) {
	store := journal.NewMemoryStore(journal.MemoryOptions{})
	if _, err := published(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		x := newSiteWith(t, enginetest.Options{Store: store})
		a := x.connect()
		a.start()
		a.say("hi")
		r := x.e.Request()
		r.Delta("half of a mess")
		synctest.Wait()
		r.Message("half of a message")
		r.Call("w", "work", `{}`)
		r.End()
		run := x.e.Run()
		if err := run.Call.Host.Record(run.Ctx, &p.CommandStarted{Call: run.Call.ID, Command: []string{"sleep", "9"}, Cwd: "/w"}); err != nil {
			t.Fatal(err)
		}
		run.Print("z")
		synctest.Wait()
		x.e.Kill()
		y := newSiteWith(t, enginetest.Options{Store: store})
		y.dir = x.dir
		b := y.connect()
		b.open("session/load", a)
		got := b.until("answer 2 ok")
		want := []string{
			"user_message u1.0.0 hi", "agent_message 1.1.0 half of a message",
			"tool_call 1.1.1 sleep 9 execute failed",
		}
		for i, line := range want {
			if i >= len(got) || !strings.HasPrefix(got[i], line) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if !strings.Contains(got[2], "z") {
			t.Errorf("the output is lost: %s", got[2])
		}
		for _, line := range got {
			if strings.Contains(line, "in_progress") {
				t.Errorf("a call that was cut is open: %s", line)
			}
		}
	})
}

// Sessions are listed with their directory and title, and are there until they are deleted.
func TestListCloseAndDelete(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		list := func(params string) (titles []string) {
			for _, s := range c.result("session/list", params)["sessions"].([]any) {
				titles = append(titles, fmt.Sprint(at(s, "title"), " in ", c.shorten(at(s, "cwd").(string))))
			}
			return titles
		}
		if got := list(`{}`); len(got) > 0 {
			t.Errorf("there is %q", got)
		}
		c.start()
		c.say("do a thing\nand another")
		x.e.Request().Delta("one")
		synctest.Wait()
		closing := c.ask("session/close", `{"sessionId":"S"}`)
		if got := at(c.response(4), "result", "stopReason"); closing != 6 && got != "cancelled" {
			t.Errorf("the prompt is answered %v", got)
		}
		c.response(closing)
		if got := c.refused("session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"x"}]}`); !strings.HasPrefix(got, "-32002 ") {
			t.Errorf("a closed session answers %s", got)
		}
		same(t, []string{"do a thing in /w"}, list(`{}`))
		same(t, []string{"do a thing in /w"}, list(fmt.Sprintf(`{"cwd":%q}`, x.dir)))
		same(t, nil, list(`{"cwd":"/nowhere"}`))
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(x.dir, link); err != nil {
			t.Fatal(err)
		}
		same(t, []string{"do a thing in /w"}, list(fmt.Sprintf(`{"cwd":%q}`, link)))
		c.result("session/delete", `{"sessionId":"S"}`)
		c.result("session/delete", `{"sessionId":"S"}`)
		c.result("session/delete", `{"sessionId":"what?"}`)
		same(t, nil, list(`{}`))
		if got := c.refused("session/load", fmt.Sprintf(`{"sessionId":"S","cwd":%q,"mcpServers":[]}`, x.dir)); !strings.HasPrefix(got, "-32002 ") {
			t.Errorf("a deleted session answers %s", got)
		}
		if got := c.refused("session/list", `{"cursor":"what?"}`); !strings.HasPrefix(got, "-32602 ") {
			t.Errorf("a bad cursor is answered %s", got)
		}
	})
}
