package main

import (
	"strings"
	"syscall"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// killedWithAMessage runs a turn, sends a message while it runs, and kills the
// process. It returns the conversation.
func (s *mcpSite) killedWithAMessage(text string) string {
	s.t.Helper()
	c := s.connect("--demo")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"cwd":%q}}`, s.work)
	var id string
	c.await("a conversation", func(m map[string]any) bool {
		r, _ := m["result"].(map[string]any)
		id, _ = r["conversationId"].(string)
		return m["id"] == 1.0
	})
	message := `{"jsonrpc":"2.0","id":%d,"method":"sendUserMessage","params":{"conversationId":%q,"items":[{"type":"text","data":{"text":%q}}]}}`
	c.send(message, 2, id, "run: touch runs; sleep 600")
	eventually(s.t, "the command runs", func() bool { return exists(s.work + "/runs") })
	c.send(message, 3, id, text)
	c.await("the second message to be taken", func(m map[string]any) bool { return m["id"] == 3.0 })
	c.signal(syscall.SIGKILL)
	c.code()
	return id
}

// A message that waited when the process was killed is mentioned by everything
// that opens the conversation, also after other turns, until it is sent or dropped.
func TestReturnedMessagesAreMentioned(t *testing.T) {
	t.Parallel()
	const text = "say what you're doing"
	s := newMCPSite(t, "never")
	id := s.killedWithAMessage(text)
	out, _, _ := s.run("show", id)
	contains(t, "show, before it was opened", out, "not delivered yet: "+text)
	for range 2 {
		_, errs, _ := s.run("exec", "resume", "--demo", id, "talk 3")
		contains(t, "exec resume with another prompt", errs, "not delivered: "+text, "exec resume "+id+" --returned", "fermata returned "+id+" --drop")
	}
	out, _, _ = s.run("show", id)
	contains(t, "show, two turns later", out, "not delivered: "+text, "fermata exec resume "+id+" --returned")
	out, _, _ = s.run("list")
	contains(t, "list", out, "completed, 1 returned")
	out, _, code := s.run("returned", id)
	if want := "2  " + text + "\n"; out != want || code != exitOK {
		t.Errorf("returned: %q, exit code %d; want %q", out, code, want)
	}

	if _, errs, code := s.run("returned", id, "7", "--drop"); code != exitFailed {
		t.Errorf("drop another one: exit code %d: %s", code, errs)
	}
	_, errs, code := s.run("returned", id, "--drop")
	contains(t, "--drop", errs, "dropped 1 message")
	if code != exitOK {
		t.Errorf("--drop: exit code %d", code)
	}
	if _, _, code := s.run("returned", id, "--drop"); code != exitFailed {
		t.Errorf("--drop when there is none: exit code %d", code)
	}
	_, errs, _ = s.run("exec", "resume", "--demo", id, "--returned")
	contains(t, "--returned at last", errs, "no message is returned")
	out, _, _ = s.run("show", id)
	if strings.Contains(out, "not delivered") {
		t.Errorf("show at last:\n%s", out)
	}
	out, _, _ = s.run("list")
	if strings.Contains(out, "returned") {
		t.Errorf("list at last:\n%s", out)
	}
	s.fsck(id)
}

func TestReturnedMessagesAreSentAgain(t *testing.T) {
	t.Parallel()
	const text = "talk 7"
	s := newMCPSite(t, "never")
	id := s.killedWithAMessage(text)
	c := s.connect("--demo")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"resumeConversation","params":{"conversationId":%q}}`, id)
	log := c.notice("notifications/message")
	contains(t, "the MCP server's remark", log["data"].(string), "not delivered before", text)
	c.in.Close()
	c.code()
	if _, errs, code := s.run("exec", "resume", "--demo", id, "another turn"); code != exitOK {
		t.Fatalf("another turn: %d\n%s", code, errs)
	}
	out, _, _ := s.run("show", id)
	contains(t, "show, a turn later", out, "not delivered: "+text, "fermata exec resume "+id+" --returned")
	out, errs, code := s.run("exec", "resume", "--demo", id, "--returned")
	if code != exitOK {
		t.Errorf("--returned: %d\n%s", code, errs)
	}
	contains(t, "the answer to what was returned", out, "[demo]")
	out, _, _ = s.run("show", id)
	contains(t, "show at last", out, "> "+text)
	if strings.Contains(out, "not delivered") {
		t.Errorf("show at last:\n%s", out)
	}
	s.fsck(id)
}

// Whoever sends a message and waits hears what became of it, also if the owner is killed.
func TestSendWaitsForDelivery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags []string
		end   func(owner *process, open func())
		code  int
		want  string
	}{
		"delivered":            {nil, func(_ *process, open func()) { open() }, exitOK, "delivered in turn 1"},
		"queued, delivered":    {[]string{"--queue"}, func(_ *process, open func()) { open() }, exitOK, "delivered in turn 2"},
		"the owner is killed":  {[]string{"--queue"}, func(owner *process, _ func()) { owner.signal(syscall.SIGKILL) }, 6, "fermata returned ID 2 --drop drops it"},
		"the owner is stopped": {[]string{"--steer"}, func(owner *process, _ func()) { owner.signal(syscall.SIGTERM) }, 6, "fermata returned ID 2 --drop drops it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			open := pl.fifo("fifo")
			owner := pl.start("exec", "--demo", "run: echo begun; cat fifo; echo over")
			id := pl.conversation()
			pl.awaitText(id, "begun")
			sender := pl.start(append([]string{"send", id, "--wait", "say something"}, tt.flags...)...)
			pl.awaitEvent(id, "the message", func(b p.Body) bool { _, ok := b.(*p.InputAccepted); return ok })
			tt.end(owner, open)
			if code := sender.code(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			contains(t, "the sender's stderr", strings.ReplaceAll(sender.err.String(), id, "ID"), tt.want)
			owner.code()
			out, _, _ := pl.run("returned", id)
			if returned := tt.code == 6; returned != strings.Contains(out, "2  say something") {
				t.Errorf("returned: %q", out)
			}
			pl.fsck(id)
		})
	}
}
