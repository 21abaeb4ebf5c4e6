package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A server of the page was killed while a client was attached, which then started a server of its own. The page can be served
// again at once, beside that one and in its place when it ends.
func TestThePageComesBackBesideAClient(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.stopServe()
	first := pl.start("serve", "--http", "--demo")
	eventually(t, "the link is printed", func() bool { return strings.HasSuffix(first.out.String(), "\n") })
	first.signal(syscall.SIGKILL)
	first.code()
	client := pl.start("exec", "--demo", "--detach", "run: echo begun; exec sleep 1000")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	owner := pl.owner(id)

	again := pl.start("serve", "--http", "--demo")
	eventually(t, "the link is printed again", func() bool { return strings.HasSuffix(again.out.String(), "\n") })
	contains(t, "stderr", again.err.String(), "this one serves beside it")
	if a, b, ok := strings.Cut(first.out.String(), "/?link="); !ok || !strings.HasPrefix(again.out.String(), a+"/") || b == "" {
		t.Errorf("the page was at %s, and is at %s", first.out.String(), again.out.String())
	}
	if err := syscall.Kill(owner, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	client.code()
	eventually(t, "it takes the place of the other", func() bool {
		return strings.Contains(again.err.String(), fmt.Sprintf("process %d serves", again.cmd.Process.Pid))
	})
	if _, errs, code := pl.run("serve", "--http", "--demo"); code != exitFailed || !strings.Contains(errs, "hint: ") {
		t.Errorf("a second one: exit code %d, %s", code, errs)
	}
	again.signal(syscall.SIGTERM)
	again.code()
}
