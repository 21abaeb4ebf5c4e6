package main

import (
	"os"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// Whoever is told how to go on is told all of it, also after an approval.
func TestHowToGoOnOutsideARepository(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Responses, "", modeltest.Respond(shell("call_1", "touch made")), modeltest.Respond(modeltest.Say("and on")))
	if err := os.Remove(s.repo()); err != nil {
		t.Fatal(err)
	}
	s.run("exec", "--skip-git-repo-check", "--park", "-a", "untrusted", "hi")
	id := s.conversation()
	_, errs, code := s.run("approve", id, "--stop")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, "stderr", errs, "to resume: fermata exec resume --skip-git-repo-check "+id+" PROMPT\n")
	s.must("exec", "resume", "--skip-git-repo-check", id, "again")
}

// A refusal is for the caller alone: the model is not asked.
func TestNothingIsAskedOutsideARepository(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Chat, "", modeltest.Respond(modeltest.Say("one")), modeltest.Respond(modeltest.Say("two")))
	if err := os.Remove(s.repo()); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := s.run("exec", "hi"); code != exitFailed || len(s.srv.Requests()) != 0 || len(s.conversations()) != 0 {
		t.Errorf("exit code %d, %d requests\n%s", code, len(s.srv.Requests()), errs)
	}
	s.must("exec", "--skip-git-repo-check", "hi")
	if _, errs, code := s.run("exec", "resume", "--last", "again"); code != exitFailed || len(s.srv.Requests()) != 1 {
		t.Errorf("exit code %d, %d requests\n%s", code, len(s.srv.Requests()), errs)
	}
	id := s.conversation()
	for _, args := range [][]string{{id, "again"}, {id, ""}, {id, "again", "--color", "blue"}} {
		if _, errs, code := s.run(append([]string{"exec", "fork"}, args...)...); code == exitOK || len(s.conversations()) != 1 {
			t.Errorf("fork %q: exit code %d, %d conversations\n%s", args, code, len(s.conversations()), errs)
		}
	}
	s.must("exec", "resume", "--last", "--skip-git-repo-check", "again")
	matches(t, "end of the request", tail(s.srv.Wait(2), 3), `user  hi`, `assistant  one`, `user  again`)
	s.fsck()
}
