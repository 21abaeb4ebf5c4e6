package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// A review asks about the changes that the flags name. It can read and nothing else, whatever the
// configuration allows, and says so when the model tries.
func TestReview(t *testing.T) {
	t.Parallel()
	answer := modeltest.Respond(modeltest.Say("a.go:1: wrong"))
	write := modeltest.Respond(shellCall("call_1", "sh", "-c", "cat a.go && echo more >> a.go"))
	s := newSite(t, wirecheck.Responses, "", write, answer, answer, answer)
	s.git("init", "-q", "-b", "main")
	s.file("a.go", "one\n")
	s.git("add", ".")
	s.git("commit", "-q", "-m", "first")

	_, errs, code := s.run("review", "--json=false")
	if code != exitFailed || !strings.Contains(errs, "fermata: nothing to review: ") || !strings.Contains(errs, "hint: --base BRANCH") {
		t.Errorf("without changes: exit code %d\n%s", code, errs)
	}
	s.file("a.go", "two\n")
	out, errs, code := s.run("review", "-c", "sandbox_mode=danger-full-access", "-c", "approval_policy=on-request")
	if code != exitRefused || out != "a.go:1: wrong\n" {
		t.Errorf("exit code %d, answer %q\n%s", code, out, errs)
	}
	contains(t, "stderr", errs, "  two\n", "fermata: refused, since there is no interactive client:", "hint: a review only reads; to let it change files: fermata exec resume "+s.conversation())
	if b, _ := os.ReadFile(filepath.Join(s.work, "a.go")); string(b) != "two\n" {
		t.Errorf("the review changed a file: %q", b)
	}
	s.git("checkout", "-q", "-b", "work")
	s.git("commit", "-q", "-a", "-m", "second")
	for i, c := range []struct{ want, args string }{
		{"those of this branch since it left main (git diff main...HEAD).", "review --base main"},
		{"those of the commit HEAD (git show HEAD).\n\nLook at this in particular: races", "review --commit HEAD races"},
	} {
		if out, errs, code := s.run(strings.Fields(c.args)...); code != exitOK || out != "a.go:1: wrong\n" {
			t.Errorf("%s: exit code %d, answer %q\n%s", c.args, code, out, errs)
		}
		if asked := tail(s.srv.Wait(i+3), 1)[0]; !strings.HasSuffix(asked, c.want) {
			t.Errorf("%s: the model was asked %q", c.args, asked)
		}
	}
}
