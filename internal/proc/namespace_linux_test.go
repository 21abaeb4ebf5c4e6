package proc

import (
	"os"
	"testing"
)

func TestNamespace(t *testing.T) {
	s := newSpawner(t, Options{Namespace: true})
	if !s.Namespaced() {
		t.Skip("no namespaces here")
	}
	mark := newMark()
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "100." + mark}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "the other command runs", func() bool { return len(marked(t, mark)) == 1 })
	if id := c.Identity(); id.Leader != 0 || !livesAs(id.PID, id.Start) {
		t.Errorf("identity %+v, want a living shim and no leader: its number has no meaning here", id)
	}

	r, out := runScript(t, s, `echo $PPID; kill -9 1; test -d /proc/$$ && echo seen
		grep -l '[`+mark[:1]+"]"+mark[1:]+`' /proc/[0-9]*/cmdline; id -u`)
	want := "1\nseen\n" + itoa(os.Getuid()) + "\n"
	if r.ExitCode != 0 || r.Err != nil || out.Text() != want {
		t.Errorf("result %+v, output %q, want %q", r, out.Text(), want)
	}
	c.Stop(nil)
	c.Wait()
	noneMarked(t, mark)
}

// TestNamespaceGivesNoRights has an ordinary user's command look at what it may
// do: entering the namespace took rights that must not be passed on.
func TestNamespaceGivesNoRights(t *testing.T) {
	s := newSpawner(t, Options{Namespace: true})
	if !s.Namespaced() || os.Getuid() == 0 {
		t.Skip("only for an ordinary user with namespaces")
	}
	r, out := runScript(t, s, "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -v '\\b0000000000000000$'; echo end")
	if r.Err != nil || out.Text() != "end\n" {
		t.Errorf("result %+v, the command has rights:\n%s", r, out.Text())
	}
}
