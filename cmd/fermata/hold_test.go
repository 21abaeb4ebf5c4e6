package main

import (
	"os"
	"strings"
	"testing"

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
	// A turn that is held is stopped like any other.
	h := newSite(t, wirecheck.Responses, "", usedUp())
	run := h.start("exec", "--hold", "do it")
	eventually(t, "the hold", func() bool { return run.err.has("waiting: a limit") })
	run.signal(os.Interrupt)
	if code := run.code(); code != 130 {
		t.Errorf("exit code %d", code)
	}
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
