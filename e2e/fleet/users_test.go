package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
)

// accounts starts a server with the accounts of deploy/nats/users.conf: alice and bob, each with a user for people and one for nodes.
func accounts(t testing.TB) *server.Server {
	t.Helper()
	for _, name := range []string{"ALICE_PASSWORD", "ALICE_NODE_PASSWORD", "BOB_PASSWORD", "BOB_NODE_PASSWORD"} {
		if os.Getenv(name) == "" {
			t.Fatalf("%s is not set", name) // by TestMain: the file reads it
		}
	}
	o, err := server.ProcessConfigFile(filepath.Join("..", "..", "deploy", "nats", "users.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o.StoreDir = t.TempDir()
	return listen(t, o)
}

// account is what the configuration of a user of an account says.
func account(user string) []string {
	return []string{fmt.Sprintf("user = %q", user), fmt.Sprintf("password = %q", os.Getenv(passwordOf(user)))}
}

func passwordOf(user string) string {
	return strings.ToUpper(strings.ReplaceAll(user, "-", "_")) + "_PASSWORD"
}

// sharedNode starts a node that alice and bob share, and returns the directory of their homes.
func sharedNode(t testing.TB, s *server.Server, args ...string) (m *machine, users string, node *exec.Cmd, out *output) {
	t.Helper()
	m = newMachine(t, "")
	users = t.TempDir()
	for _, name := range []string{"alice", "bob"} {
		home := newMachine(t, s.ClientURL(), account(name+"-node")...).home
		if err := os.Rename(home, filepath.Join(users, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(m.home, "config.toml")); err != nil {
		t.Fatal(err)
	}
	node, out = m.start(append([]string{"serve", "--node", "shared", "--users", users}, args...)...)
	eventually(t, "both take part", func() bool {
		return strings.Contains(out.String(), "alice: node shared takes") && strings.Contains(out.String(), "bob: node shared takes")
	})
	return m, users, node, out
}

// Two users share a node, and neither can read, open, stop or starve the other.
func TestUsersShareANode(t *testing.T) {
	t.Parallel()
	s, o := accounts(t), newOrigin(t)
	_, users, node, out := sharedNode(t, s, "--turns", "2", "--turns-each", "1")
	alice, bob := newMachine(t, s.ClientURL(), account("alice")...), newMachine(t, s.ClientURL(), account("bob")...)
	submit := func(m *machine, prompt string, more ...string) string {
		t.Helper()
		answer, err := m.run(append([]string{"exec", "--demo", "--fleet", "--repo", o.url, "run: " + prompt}, more...)...)
		if err != nil {
			t.Errorf("%s: %v: %s\nthe node said %s", prompt, err, answer, out)
		}
		return answer
	}
	submit(bob, "echo bobs-secret > secret.txt; pwd")
	ids := bob.must("list", "--json")
	trees, _ := filepath.Glob(filepath.Join(users, "bob-work", "0*"))
	if len(trees) != 1 {
		t.Fatalf("bob's work trees are %q", trees)
	}
	id := filepath.Base(trees[0])
	if !strings.Contains(ids, id) {
		t.Errorf("bob lists %s", ids)
	}

	// By commands and by tools on the node.
	for _, prompt := range []string{
		"cat " + trees[0] + "/secret.txt", "cat " + users + "/bob/config.toml", "ls -R " + users + "/bob-work",
		"cat /proc/*/cwd/secret.txt", "find " + users + " -name secret.txt | xargs cat",
	} {
		if answer := submit(alice, prompt+"; true"); strings.Contains(answer, "bobs-secret") || strings.Contains(answer, os.Getenv("BOB_NODE_PASSWORD")) {
			t.Errorf("alice's command %q shows %s", prompt, answer)
		}
	}
	// By what a turn asks for.
	for want, args := range map[string][]string{
		"node shared did not take it: sandbox": {"exec", "--demo", "--fleet", "--wait", "2s", "-s", "danger-full-access", "--repo", o.url, "run: cat " + trees[0] + "/secret.txt"},
		"node shared did not take it: ":        {"exec", "--demo", "--fleet", "--wait", "2s", "--node-dir", trees[0], "run: cat secret.txt"},
	} {
		if answer, err := alice.run(args...); err == nil || strings.Contains(answer, "bobs-secret") || !strings.Contains(answer, want) {
			t.Errorf("%q: %v: %s", args, err, answer)
		}
	}
	// Over NATS.
	for _, args := range [][]string{{"show", id}, {"exec", "--demo", "--skip-git-repo-check", "resume", id, "hi"}, {"interrupt", id}, {"delete", id}, {"attach", "--read-only", id}} {
		if answer, err := alice.run(args...); err == nil || strings.Contains(answer, "bobs-secret") {
			t.Errorf("%q: %v: %s", args, err, answer)
		}
	}
	if answer := alice.must("list", "--json"); strings.Contains(answer, `"id":"`+id) {
		t.Errorf("alice lists %s", answer)
	}
	hearNothing(t, s, bob, func() { submit(bob, "pwd") })

	// Bob's turns run while alice has more than her share.
	begun, open := "begun", filepath.Join(t.TempDir(), "open")
	for range 3 {
		alice.start("exec", "--demo", "--fleet", "--repo", o.url, gated(begun, open))
	}
	eventually(t, "alice's first turn runs", func() bool {
		all, _ := filepath.Glob(filepath.Join(users, "alice-work", "*", begun))
		return len(all) == 1
	})
	submit(bob, "pwd")
	if all, _ := filepath.Glob(filepath.Join(users, "alice-work", "*", begun)); len(all) != 1 {
		t.Errorf("alice runs %d turns at once", len(all))
	}
	touch(t, open)
	if report := bob.must("fsck"); strings.Count(report, " ok") != 3 {
		t.Errorf("fsck: %s", report)
	}
	_ = node.Process.Kill() // its processes end by themselves
	_ = node.Wait()
	eventually(t, "bob's process has left", func() bool { return strings.Contains(bob.must("fleet", "nodes"), "no node takes part") })
}

// hearNothing has alice listen to everything that she may while bob does something.
func hearNothing(t testing.TB, s *server.Server, bob *machine, f func()) {
	t.Helper()
	nc, err := natsgo.Connect(s.ClientURL(), natsgo.UserInfo("alice", os.Getenv("ALICE_PASSWORD")))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	heard := make(chan *natsgo.Msg, 1000)
	if _, err := nc.ChanSubscribe(">", heard); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	ids := bob.must("list", "--json")
	f()
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case m := <-heard:
			for _, field := range strings.Split(m.Subject, ".") {
				if len(field) == 36 && strings.Contains(ids, field) {
					t.Errorf("alice hears %s", m.Subject)
				}
			}
		default:
			return
		}
	}
}
