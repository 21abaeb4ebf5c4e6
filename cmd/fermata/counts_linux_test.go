package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a start and a call cost is counted here, since counts do not depend on how busy the machine is: processes, syncs
// and opened files, as the kernel sees them. A count that is lower than its limit is good news: lower the limit.

// traced runs the binary under strace and returns its system calls, one in a line.
func (pl *place) traced(t *testing.T, args ...string) []string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	file := filepath.Join(pl.dir, "trace")
	if err := exec.Command(strace, "-o", file, "true").Run(); err != nil {
		t.Skip("strace does not work here: ", err)
	}
	cmd := pl.command(context.Background(), args...)
	cmd.Args = append([]string{strace, "-f", "-qq", "-s", "4096", "-e", "trace=execve,fsync,fdatasync,openat,write", "-o", file}, cmd.Args...)
	cmd.Path = strace
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// countCalls counts the lines that have all parts.
func countCalls(lines []string, parts ...string) (n int) {
	for _, line := range lines {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			n++
		}
	}
	return n
}

// before returns the lines before the first one with a text.
func before(t *testing.T, lines []string, text string) []string {
	t.Helper()
	for i, line := range lines {
		if strings.Contains(line, text) {
			return lines[:i]
		}
	}
	t.Fatalf("no system call has %q", text)
	return nil
}

func TestCostOfAStart(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pl.must("exec", "--demo", "what happened?") // makes the directories
	calls := pl.traced(t, "exec", "--demo", "what happened?")
	if n := countCalls(calls, "execve("); n > 1 {
		t.Errorf("a turn without calls starts %d processes, want 1", n)
	}
	// The name of the journal, and that the conversation began. The message and the request are one more.
	if n := countCalls(before(t, calls, "model_requested"), "sync("); n > 2 {
		t.Errorf("%d syncs before the first request is recorded, want at most 2", n)
	}
	if n := countCalls(calls, "openat(", pl.dir) - countCalls(calls, "openat(", pl.dir, "ENOENT"); n > 9 {
		t.Errorf("%d files of the user are opened, want at most 9", n)
	}
}

// A call starts the shell and its supervisor, and a supervisor for the next call.
func TestCostOfACall(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	flags := []string{"exec", "--demo", "--dangerously-bypass-approvals-and-sandbox"}
	const calls = 3
	one := pl.traced(t, append(flags, "run: true")...)
	some := pl.traced(t, append(flags, "plan: "+strings.Repeat("run: true; ", calls))...)
	started := func(lines []string) int {
		return countCalls(lines, "execve(", "= 0") + countCalls(lines, "execve resumed", "= 0")
	}
	if n := started(one); n > 4 {
		t.Errorf("a turn with a call starts %d processes, want at most 4", n)
	}
	if n := started(some) - started(one); n > 2*(calls-1) {
		t.Errorf("%d more calls start %d processes, want at most 2 each", calls-1, n)
	}
}

// inits returns the packages that a process of the binary initialises.
func (pl *place) inits(t *testing.T, argv ...string) []string {
	t.Helper()
	cmd := pl.command(context.Background())
	cmd.Args, cmd.Env = argv, append(cmd.Env, "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, trace)
	}
	var packages []string
	for line := range strings.Lines(string(trace)) {
		if name, ok := strings.CutPrefix(line, "init "); ok {
			packages = append(packages, strings.Fields(name)[0])
		}
	}
	return packages
}

// Packages that are initialised cost every start, and every call: a supervisor is this program, too, but does its work before most
// packages are.
func TestFewPackagesAreInitialised(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	for _, c := range []struct { // the test binary has a few more than the program
		what string
		argv []string
		max  int
	}{
		{"a supervisor", []string{"fermata-shim", "probe"}, 132},
		{"fermata --version", []string{"fermata", "--version"}, 235},
	} {
		if list := pl.inits(t, c.argv...); len(list) > c.max || len(list) < 20 {
			t.Errorf("%s initialises %d packages, want at most %d:\n%s", c.what, len(list), c.max, strings.Join(list, "\n"))
		}
	}
}
