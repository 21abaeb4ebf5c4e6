package proc

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// murder kills fermata and the shim so that neither can act on the other's death.
func murder(t *testing.T, a *agent) {
	t.Helper()
	halt(t, a.Process.Pid)
	if err := syscall.Kill(a.id.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim is dead", func() bool { return !alivePID(a.id.PID) })
	a.kill()
}

// halt stops a process, and returns when none of its threads runs any more.
func halt(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stands still", func() bool {
		threads, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*/stat")
		for _, name := range threads {
			text, _ := os.ReadFile(name)
			if p, err := parseStat(pid, text); err == nil && p.state != 'T' {
				return false
			}
		}
		return len(threads) > 0
	})
}

func TestReclaimWithoutShim(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"plain", `sleep 100.$MARK & touch $READY; wait`},
		{"own session", `setsid sh -c 'trap "" TERM; touch $READY; for i in 1 2 3; do sleep 100.$MARK; done' $MARK & wait`},
		{"empty environment in the session", `env -i PATH="$PATH" sleep 100.$MARK & touch $READY; wait`},
		{
			"empty environment and own session below one with the token",
			`setsid sh -c 'env -i PATH="$PATH" setsid sleep 100.$MARK & touch $READY; wait' $MARK & wait`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := victim{script: c.script}.scene(t)
			a := startAgent(t, agentJob{Spec: sc.spec})
			sc.awaitReady(t)
			murder(t, a)
			if len(marked(t, sc.mark)) == 0 {
				t.Fatal("nothing was left, so this proves nothing")
			}
			killed, err := Reclaim(a.id)
			noneMarked(t, sc.mark)
			if err != nil || killed == 0 {
				t.Errorf("killed %d, error %v", killed, err)
			}
			if killed, err := Reclaim(a.id); err != nil || killed != 0 {
				t.Errorf("again: killed %d, error %v, want nothing", killed, err)
			}
		})
	}
}

// TestReclaimWithHaltedShim has a command that halts its shim again and again:
// when fermata dies the shim cannot act.
func TestReclaimWithHaltedShim(t *testing.T) {
	needs(t, "perl")
	sc := victim{script: halter}.scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	a.kill()
	if _, err := Reclaim(a.id); err != nil {
		t.Error(err)
	}
	noneMarked(t, sc.mark)
	if livesAs(a.id.PID, a.id.Start) {
		t.Error("the shim lives")
	}
}

func TestReclaimLeavesStrangersAlone(t *testing.T) {
	sc := victims[0].scene(t)
	a := startAgent(t, agentJob{Spec: sc.spec})
	sc.awaitReady(t)
	for _, c := range []struct {
		name   string
		change func(id *Identity)
	}{
		{"another boot", func(id *Identity) { id.Boot = "other" }},
		{"numbers used again", func(id *Identity) { id.Start++; id.LeaderStart++; id.Token = "other" }},
		{"nothing known", func(id *Identity) { *id = Identity{Boot: id.Boot} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := a.id
			c.change(&id)
			if killed, err := Reclaim(id); killed != 0 || err != nil {
				t.Errorf("killed %d, error %v, want nothing", killed, err)
			}
			if !livesAs(a.id.PID, a.id.Start) || len(marked(t, sc.mark)) == 0 {
				t.Fatal("a stranger was killed")
			}
		})
	}
	a.kill()
	eventually(t, "the command is gone", func() bool { return len(marked(t, sc.mark)) == 0 })
}

func TestLeftovers(t *testing.T) {
	self := os.Getpid()
	id := Identity{PID: 100, Start: 50, Leader: 101, LeaderStart: 51, Token: "tok"}
	for _, c := range []struct {
		name   string
		table  []process
		tokens []int // who carries the token
		want   []int
	}{
		{name: "empty"},
		{
			name: "shim lives: its descendants, not itself",
			table: []process{
				{pid: 100, ppid: 1, start: 50},
				{pid: 101, ppid: 100, session: 101, start: 51},
				{pid: 102, ppid: 100, session: 102, start: 60},
				{pid: 103, ppid: 102, session: 102, start: 61},
				{pid: 200, ppid: 1, session: 200, start: 60},
			},
			want: []int{101, 102, 103},
		},
		{
			name:  "numbers used again",
			table: []process{{pid: 100, start: 99}, {pid: 101, ppid: 100, session: 101, start: 98}, {pid: 102, ppid: 101, session: 101, start: 99}},
		},
		{
			name:  "leader proves its session",
			table: []process{{pid: 101, ppid: 1, session: 101, start: 51}, {pid: 105, ppid: 1, session: 101, start: 70}},
			want:  []int{101, 105},
		},
		{
			name:   "a member with the token proves the session",
			table:  []process{{pid: 105, ppid: 1, session: 101, start: 70}, {pid: 106, ppid: 1, session: 101, start: 71}},
			tokens: []int{106}, want: []int{105, 106},
		},
		{
			name:  "a session without proof",
			table: []process{{pid: 105, ppid: 1, session: 101, start: 70}},
		},
		{
			name:   "token and descendants in other sessions",
			table:  []process{{pid: 107, ppid: 1, session: 107, start: 70}, {pid: 108, ppid: 107, session: 108, start: 71}},
			tokens: []int{107}, want: []int{107, 108},
		},
		{
			name:   "older than the shim",
			table:  []process{{pid: 107, ppid: 1, session: 107, start: 49}},
			tokens: []int{107},
		},
		{
			name:  "the dead are left out",
			table: []process{{pid: 101, ppid: 1, session: 101, start: 51, state: 'Z'}, {pid: 105, ppid: 1, session: 101, start: 70}},
			want:  []int{105},
		},
		{
			name: "never ourselves and those above us",
			table: []process{
				{pid: 101, ppid: 1, session: 101, start: 51},
				{pid: 105, ppid: 101, session: 101, start: 52},
				{pid: self, ppid: 105, session: 101, start: 53},
				{pid: 106, ppid: 101, session: 101, start: 54},
			},
			want: []int{106},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			carries := func(p process, token string) bool { return token == "tok" && slices.Contains(c.tokens, p.pid) }
			var got []int
			for _, p := range leftovers(c.table, id, carries) {
				got = append(got, p.pid)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("leftovers (-want +got):\n%s", d)
			}
		})
	}
}

func TestKernelThreadsAreNoLeftovers(t *testing.T) {
	// In a namespace the leader is not known, and kernel threads have session 0.
	table := []process{{pid: 2, session: 0, start: 60}, {pid: 107, ppid: 1, session: 0, start: 70}}
	id := Identity{PID: 100, Start: 50, Token: "tok"}
	got := leftovers(table, id, func(p process, _ string) bool { return p.pid == 107 })
	if len(got) != 1 || got[0].pid != 107 {
		t.Errorf("leftovers %+v, want process 107 alone", got)
	}
}

func TestHasToken(t *testing.T) {
	for list, want := range map[string]bool{"": false, "a": true, "b": false, "b,a": true, "a,b": true, "ab": false, "ba,c": false} {
		if got := hasToken(list, "a"); got != want {
			t.Errorf("token in %q: %v, want %v", list, got, want)
		}
	}
}
