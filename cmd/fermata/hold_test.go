package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

// usedUp is how a service says that a plan is used up.
func usedUp() modeltest.Reply {
	return modeltest.Status(429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":7200}}`)
}

func isHeld(b p.Body) bool {
	_, ok := b.(*p.Held)
	return ok
}

// A turn that waits for a limit survives kill -9 and a restart, and is resumed by somebody.
func TestHoldSurvivesKill(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "", usedUp(), usedUp(), modeltest.Respond(modeltest.Say("finished")))
		run := s.start("exec", "--hold", "do it")
		eventually(t, "the hold on stderr", func() bool { return run.err.has("waiting: a limit of the model service is reached") })
		id := s.conversation()
		s.awaitEvent(id, "the hold", isHeld)
		run.signal(os.Kill)
		run.code()
		contains(t, "fsck", s.must("fsck", id), id)
		out, errs, code := s.run("exec", "resume", id, "and more")
		if code != 3 || !strings.Contains(errs, "--now") {
			t.Errorf("a message to a turn that waits: exit code %d\n%s%s", code, out, errs)
		}
		contains(t, "the list", s.must("list"), "open")

		again := s.start("exec", "resume", id, "--now") // still used up
		eventually(t, "the hold once more", func() bool { return again.err.has("trying again") && again.err.has("waiting: a limit") })
		again.signal(os.Kill)
		again.code()

		out, errs, code = s.run("exec", "resume", id, "--now")
		if code != 0 || strings.TrimSpace(out) != "finished" {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		if text := string(s.srv.Wait(3).Raw); !strings.Contains(text, "and more") {
			t.Errorf("the message that waited was not sent: %s", text)
		}
		if _, errs, code := s.run("exec", "resume", id, "--now"); code != 1 || !strings.Contains(errs, "does not wait for a limit") {
			t.Errorf("nothing to try: exit code %d\n%s", code, errs)
		}
	})
}

// Without --hold a limit ends the turn, and says when it is lifted.
func TestLimitFailsARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Responses, "", usedUp(), modeltest.Respond(modeltest.Say("ok")))
	_, errs, code := s.run("exec", "do it")
	if code != 1 || !strings.Contains(errs, "lifted in 2h0m0s") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	// Also if the service says nothing but that.
	for _, body := range []string{"", "{}"} {
		e := newSite(t, wirecheck.Responses, "", modeltest.Status(429, body, "Retry-After", "7200"))
		if _, errs, code := e.run("exec", "do it"); code != 1 || !strings.Contains(errs, "answered 429 Too Many Requests") || !strings.Contains(errs, "lifted in 2h0m0s") {
			t.Errorf("body %q: exit code %d\n%s", body, code, errs)
		}
	}
	// A turn that is held is stopped like any other.
	h := newSite(t, wirecheck.Responses, "", usedUp())
	run := h.start("exec", "--hold", "do it")
	eventually(t, "the hold", func() bool { return run.err.has("waiting: a limit") })
	run.signal(os.Interrupt)
	if code := run.code(); code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// What the configuration says of limits counts for every command that runs turns.
func TestOnLimitOfTheFile(t *testing.T) {
	t.Parallel()
	const setting = "on_limit = \"hold\"\n"
	s := newSite(t, wirecheck.Responses, "", usedUp(), modeltest.Respond(modeltest.Say("finished")))
	s.prepend(setting)
	run := s.start("exec", "do it")
	eventually(t, "the hold of exec", func() bool { return run.err.has("waiting: a limit") })
	id := s.conversation()
	s.awaitEvent(id, "the hold", isHeld)
	run.signal(os.Kill)
	run.code()
	if out, errs, code := s.run("exec", "resume", id, "--now"); code != 0 || strings.TrimSpace(out) != "finished" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}

	m := newMCPSite(t, "never", usedUp())
	m.prepend(setting)
	c := m.connect()
	c.tool(1, "codex", `{"prompt":"do it"}`)
	c.await("the hold of the server", func(msg map[string]any) bool {
		if msg["id"] == float64(1) {
			t.Fatalf("the call ended: %v", msg)
		}
		return strings.Contains(fmt.Sprint(msg), "waiting: a limit")
	})
}

// ended reports whether the hold of the only conversation has ended.
func (s *site) ended() bool {
	return slices.ContainsFunc(s.events(s.conversation()), func(e p.Event) bool {
		_, ok := e.Body.(*p.HoldEnded)
		return ok
	})
}

// The limit of a held turn may have passed when the conversation is opened: the turn continues at once,
// and --now follows it.
func TestTryNowAfterTheLimit(t *testing.T) {
	t.Parallel()
	soon := modeltest.Status(429, `{"error":{"type":"usage_limit_reached","message":"used up","resets_in_seconds":2}}`)
	var s *site
	for s == nil || s.ended() { // a slow machine may kill it too late, when the limit has passed
		s = newSite(t, wirecheck.Responses, "", soon, modeltest.Respond(modeltest.Say("finished")))
		run := s.start("exec", "--hold", "do it")
		eventually(t, "the hold", func() bool { return run.err.has("waiting: a limit") })
		run.signal(os.Kill)
		run.code()
	}
	id := s.conversation()
	var until time.Time
	for _, e := range s.events(id) {
		if b, ok := e.Body.(*p.Held); ok {
			until = b.Until
		}
	}
	eventually(t, "the end of the limit", func() bool { return time.Now().After(until) })
	out, errs, code := s.run("exec", "resume", id, "--now")
	if code != 0 || strings.TrimSpace(out) != "finished" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for _, wrong := range []string{"does not wait", "give a prompt", "another process"} {
		if strings.Contains(errs, wrong) {
			t.Errorf("stderr says %q:\n%s", wrong, errs)
		}
	}
}

// A turn that was held and already runs again is followed; one that was never held is not what --now is for.
func TestTryNowWhileItRuns(t *testing.T) {
	t.Parallel()
	gate, never := modeltest.NewGate(), modeltest.NewGate()
	s := newSite(t, wirecheck.Responses, "", usedUp(),
		modeltest.Respond(modeltest.Pause(gate), modeltest.Say("finished")), modeltest.Respond(modeltest.Pause(never), modeltest.Say("ok")))
	run := s.start("exec", "--hold", "do it")
	eventually(t, "the hold", func() bool { return run.err.has("waiting: a limit") })
	id := s.conversation()
	first := s.start("exec", "resume", id, "--now")
	gate.Wait(t)
	second := s.start("exec", "resume", id, "--now", "-m", "other")
	eventually(t, "the second run", func() bool {
		return second.err.has("already running") && second.err.has("it continues with mock-model")
	})
	gate.Open()
	for _, r := range []*process{run, first, second} {
		if code := r.code(); code != 0 || r.out.String() != "finished\n" {
			t.Errorf("exit code %d: %s%s", code, r.out.String(), r.err.String())
		}
	}
	run = s.start("exec", "resume", id, "more")
	never.Wait(t)
	if _, errs, code := s.run("exec", "resume", id, "--now"); code != 1 || !strings.Contains(errs, "turn 2 runs; it does not wait for a limit") || !strings.Contains(errs, "fermata attach "+id) {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	never.Open()
	run.code()
}

// A turn can be taken back before the next one.
func TestResumeRevertsATurn(t *testing.T) {
	t.Parallel()
	ok := modeltest.Respond(modeltest.Say("ok"))
	s := newSite(t, wirecheck.Responses, "", ok, ok, ok)
	s.must("exec", "first")
	id := s.conversation()
	s.must("exec", "resume", id, "zweitens")
	s.must("exec", "resume", id, "--revert", "2", "drittens")
	text := string(s.srv.Wait(3).Raw)
	if !strings.Contains(text, "first") || strings.Contains(text, "zweitens") || !strings.Contains(text, "drittens") {
		t.Errorf("the model is sent %s", text)
	}
	if _, errs, code := s.run("exec", "resume", id, "--revert", "99", "fourth"); code != 1 || !strings.Contains(errs, "revert turn 99") {
		t.Errorf("a turn that there is not: exit code %d\n%s", code, errs)
	}
}
