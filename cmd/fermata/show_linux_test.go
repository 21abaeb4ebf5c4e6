package main

import (
	"strings"
	"syscall"
	"testing"
)

// Whoever follows a conversation sees it as it goes: what was asked, the command
// that runs and what it prints, and how the turn ended.
func TestFollowShowsWhatRuns(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	run := pl.start("exec", "--demo", "run: echo line-1; sleep 600")
	id := pl.conversation()
	pr := pl.start("show", "--follow", id)
	const prompt = "> run: echo line-1; sleep 600\n[demo] I do: run: echo line-1; sleep 600\n$ echo line-1; sleep 600\n  line-1\n"
	eventually(t, "the command is shown while it runs", func() bool { return pr.out.String() == prompt })
	run.signal(syscall.SIGINT)
	run.code()
	eventually(t, "the end is shown", func() bool { return pr.out.has("· interrupted after ") })
	contains(t, "followed", pr.out.String(), prompt+"  (interrupted, ")
	pr.signal(syscall.SIGINT)
	if code := pr.code(); code != exitOK || pr.err.String() != "" {
		t.Errorf("exit code %d, stderr %q", code, pr.err.String())
	}
}

// A question and its answer are each shown once.
func TestFollowShowsARefusalOnce(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	_, _, _ = pl.run("exec", "--demo", "--park", "-a", "untrusted", "run: touch made")
	id := pl.conversation()
	pr := pl.start("show", "--follow", id)
	eventually(t, "it follows", func() bool { return pr.out.has("? waiting for approval: ") })
	pl.must("approve", id, "--deny", "--message", "not today")
	eventually(t, "the answer is shown", func() bool { return pr.out.has("It printed") })
	out := pr.out.String()
	if strings.Count(out, "(declined, ") != 1 || strings.Count(out, "$ touch made\n") != 1 || strings.Count(out, "? waiting") != 1 {
		t.Errorf("followed:\n%s", out)
	}
}

func TestShowOfABackgroundCommand(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	_, errs, code := pl.run("exec", "--demo", "-c", execFlavour, "start: sleep 600")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	contains(t, "stderr", errs, "· background command 1 is stopped with this run: sleep 600\n")
	contains(t, "conversation", pl.must("show", pl.conversation()),
		"\n$ sleep 600\n  (continues in the background as 1, ", "\n· background command 1: sleep 600\n· background command 1 ended (interrupted)\n")
}
