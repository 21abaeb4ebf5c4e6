package tree

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLeftovers(t *testing.T) {
	self := os.Getpid()
	id := Identity{PID: 100, Start: 50, Leader: 101, LeaderStart: 51, Token: "tok"}
	for _, c := range []struct {
		name   string
		table  []Process
		tokens []int // who carries the token
		want   []int
	}{
		{name: "empty"},
		{
			name: "shim lives: its descendants, not itself",
			table: []Process{
				{PID: 100, PPID: 1, Start: 50},
				{PID: 101, PPID: 100, Session: 101, Start: 51},
				{PID: 102, PPID: 100, Session: 102, Start: 60},
				{PID: 103, PPID: 102, Session: 102, Start: 61},
				{PID: 200, PPID: 1, Session: 200, Start: 60},
			},
			want: []int{101, 102, 103},
		},
		{
			name:  "numbers used again",
			table: []Process{{PID: 100, Start: 99}, {PID: 101, PPID: 100, Session: 101, Start: 98}, {PID: 102, PPID: 101, Session: 101, Start: 99}},
		},
		{
			name:  "leader proves its session",
			table: []Process{{PID: 101, PPID: 1, Session: 101, Start: 51}, {PID: 105, PPID: 1, Session: 101, Start: 70}},
			want:  []int{101, 105},
		},
		{
			name:   "a member with the token proves the session",
			table:  []Process{{PID: 105, PPID: 1, Session: 101, Start: 70}, {PID: 106, PPID: 1, Session: 101, Start: 71}},
			tokens: []int{106}, want: []int{105, 106},
		},
		{
			name:  "a session without proof",
			table: []Process{{PID: 105, PPID: 1, Session: 101, Start: 70}},
		},
		{
			name:   "token and descendants in other sessions",
			table:  []Process{{PID: 107, PPID: 1, Session: 107, Start: 70}, {PID: 108, PPID: 107, Session: 108, Start: 71}},
			tokens: []int{107}, want: []int{107, 108},
		},
		{
			name:   "older than the shim",
			table:  []Process{{PID: 107, PPID: 1, Session: 107, Start: 49}},
			tokens: []int{107},
		},
		{
			name:  "the dead are left out",
			table: []Process{{PID: 101, PPID: 1, Session: 101, Start: 51, State: 'Z'}, {PID: 105, PPID: 1, Session: 101, Start: 70}},
			want:  []int{105},
		},
		{
			name: "never ourselves and those above us",
			table: []Process{
				{PID: 101, PPID: 1, Session: 101, Start: 51},
				{PID: 105, PPID: 101, Session: 101, Start: 52},
				{PID: self, PPID: 105, Session: 101, Start: 53},
				{PID: 106, PPID: 101, Session: 101, Start: 54},
			},
			want: []int{106},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			carries := func(p Process, id Identity) bool { return id.Token == "tok" && slices.Contains(c.tokens, p.PID) }
			var got []int
			for _, p := range leftovers(c.table, id, carries) {
				got = append(got, p.PID)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("leftovers (-want +got):\n%s", d)
			}
		})
	}
}

func TestKernelThreadsAreNoLeftovers(t *testing.T) {
	// In a namespace the leader is not known, and kernel threads have session 0.
	table := []Process{{PID: 2, Session: 0, Start: 60}, {PID: 107, PPID: 1, Session: 0, Start: 70}}
	id := Identity{PID: 100, Start: 50, Token: "tok"}
	got := leftovers(table, id, func(p Process, _ Identity) bool { return p.PID == 107 })
	if len(got) != 1 || got[0].PID != 107 {
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

func TestMarkIn(t *testing.T) {
	text := []byte("Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max locked memory         77                   77                   bytes     \n" +
		"Max file locks            123456789012         99999999999999       locks     \n")
	for mark, want := range map[uint64]bool{123456789012: true, 99999999999999: true, 77: false, 12345: false} {
		if got := markIn(text, mark); got != want {
			t.Errorf("mark %d: %t, want %t", mark, got, want)
		}
	}
	if markIn([]byte("Max file locks            unlimited            unlimited            locks\n"), 1) {
		t.Error("found a mark where there is none")
	}
}

func TestRunnable(t *testing.T) {
	for text, want := range map[string]int{"0.20 0.18 0.12 901/2080 11206\n": 901, "": 0, "1 2 3 x/y 4": 0} {
		if got := runnable(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// A command is killed without SIGTERM only if the storm may be its own: a busy machine is none.
func TestStormIsOfTheCommand(t *testing.T) {
	const busy, idle = "1.00 1.00 1.00 5000/9000 1", "1.00 1.00 1.00 2/9000 1"
	for _, c := range []struct {
		load string
		own  int
		want bool
	}{{busy, Many, true}, {busy, Many - 1, false}, {idle, 10 * Many, false}} {
		if got := isStorm(c.load, c.own); got != c.want {
			t.Errorf("with load %q and %d processes: %v", c.load, c.own, got)
		}
	}
}

// The process of a command is named also if a daemon of it began in the same moment, in whatever order they are listed.
func TestLeaderBelow(t *testing.T) {
	shim := Process{PID: 10, PPID: 1, Session: 10, Start: 5}
	command := Process{PID: 11, PPID: 10, Session: 11, Start: 7}
	part := Process{PID: 12, PPID: 10, Session: 11, Start: 6} // leads nothing
	daemon := Process{PID: 13, PPID: 10, Session: 13, Start: 7}
	later := Process{PID: 9, PPID: 10, Session: 9, Start: 8}
	table := []Process{shim, command, part, daemon, later}
	for range 2 {
		if got := leaderBelow(10, table); got != command {
			t.Errorf("of %v it is %v", table, got)
		}
		slices.Reverse(table)
	}
	if got := leaderBelow(11, table); got != (Process{}) {
		t.Errorf("below a process without children: %v", got)
	}
}
