package proc

import (
	"os"
	"strings"
	"testing"
	"time"
)

// namespaces is what a command says about where it lives.
const namespaces = "readlink /proc/self/ns/user /proc/self/ns/mnt /proc/self/ns/ipc"

func ownNamespaces(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, kind := range []string{"user", "mnt", "ipc"} {
		ns, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(ns + "\n")
	}
	return all.String()
}

// TestUserNamespace runs commands of both kinds in turn, so that the spares of
// one must not serve the other.
func TestUserNamespace(t *testing.T) {
	s := newSpawner(t)
	own := ownNamespaces(t)
	for range 3 {
		r, out := runSpec(t, s, Spec{Argv: []string{"sh", "-c", namespaces}, UserNamespace: true})
		if r.Err != nil {
			t.Fatalf("result %+v", r)
		}
		for line := range strings.Lines(out.Stdout()) {
			if strings.Contains(own, line) {
				t.Errorf("the command shares %s", line)
			}
		}
		if n := strings.Count(out.Stdout(), "\n"); n != 3 {
			t.Errorf("output %q", out.Text())
		}
		if _, out := runScript(t, s, namespaces); out.Stdout() != own {
			t.Errorf("a plain command has %q, want our own %q", out.Stdout(), own)
		}
	}
}

// TestUserNamespaceKeepsIDsAndNoRights looks at what an ordinary user's command
// may do: its ids are the same, and the right to mount was not passed on.
func TestUserNamespaceKeepsIDsAndNoRights(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root gets all rights in its namespace back by exec")
	}
	s := newSpawner(t)
	for _, m := range modes {
		r, out := runSpec(t, s, Spec{
			Argv:          []string{"sh", "-c", "id -u; id -g; grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -v '\\b0000000000000000$'; echo end"},
			UserNamespace: true, PIDNamespace: m.pids,
		})
		want := itoa(os.Getuid()) + "\n" + itoa(os.Getgid()) + "\nend\n"
		if r.Err != nil || out.Text() != want {
			t.Errorf("%s: result %+v, output %q, want %q", m.name, r, out.Text(), want)
		}
	}
}

// TestUserNamespaceIsEnded stops a tree in the namespace from outside.
func TestUserNamespaceIsEnded(t *testing.T) {
	s := newSpawner(t)
	mark := newMark()
	c, err := s.Start(t.Context(), Spec{
		Argv:          []string{"sh", "-c", "(setsid sleep 1000." + mark + " &) ; exec sleep 2000." + mark},
		UserNamespace: true, Grace: 20 * time.Second, Bound: time.Minute, // slow machines
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	eventually(t, "command and daemon run", func() bool { // and no shell on the way to them any more
		all := marked(t, mark)
		return len(all) == 2 && commandName(all[0].PID) == "sleep" && commandName(all[1].PID) == "sleep"
	})
	c.Stop(nil)
	if r := c.Wait(); r.Err != nil || r.Killed != 2 || r.Signal != "SIGTERM" {
		t.Errorf("result %+v", r)
	}
	noneMarked(t, mark)
}

// TestCloseEndsSpares has a spare of each kind.
func TestCloseEndsSpares(t *testing.T) {
	s, err := NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []kind{{}, {user: true, staged: true}}
	if pidNamespaces() {
		kinds = append(kinds, kind{pids: true}, kind{user: true, pids: true, staged: true})
	}
	for _, k := range kinds {
		if r := s.Run(t.Context(), Spec{Argv: []string{"true"}, UserNamespace: k.user, PIDNamespace: k.pids}, nil); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	var spares []int
	for _, k := range kinds {
		s.mu.Lock()
		place := s.spares[k]
		s.mu.Unlock()
		if place == nil {
			t.Fatalf("no spare of kind %v", k)
		}
		sh := <-place
		place <- sh
		spares = append(spares, sh.id.PID)
	}
	s.Close()
	for _, pid := range spares {
		if alivePID(pid) {
			t.Errorf("spare %d lives after close", pid)
		}
	}
}
