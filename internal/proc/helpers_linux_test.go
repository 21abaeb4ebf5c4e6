package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

type Capture = capture.Capture

// eventually waits until cond holds. The limit is only there to fail.
func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	limit := time.NewTimer(10 * time.Minute)
	defer limit.Stop()
	for pause := time.Millisecond; !cond(); pause = min(2*pause, 32*time.Millisecond) { // a look at all processes takes time
		select {
		case <-time.After(pause):
		case <-limit.C:
			tb.Fatalf("did not come true: %s", what)
		}
	}
}

func contextForHelper() context.Context { return context.Background() }

func alivePID(pid int) bool {
	p, err := tree.Read(pid)
	return err == nil && !p.Dead()
}

// needs skips the test if a program is missing.
func needs(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			tb.Skipf("%s is not installed", p)
		}
	}
}

// newSpawner returns a Spawner that is closed with the test, which must have
// left no goroutine.
func newSpawner(tb testing.TB) *Spawner {
	tb.Helper()
	before := runtime.NumGoroutine()
	s, err := NewSpawner()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.Close()
		eventually(tb, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	})
	return s
}

// runScript runs a shell script to its end.
func runScript(tb testing.TB, s *Spawner, script string) (Result, *Capture) {
	tb.Helper()
	return runSpec(tb, s, Spec{Argv: []string{"sh", "-c", script}})
}

func runSpec(tb testing.TB, s *Spawner, spec Spec) (Result, *Capture) {
	tb.Helper()
	var out Capture
	r := s.Run(tb.Context(), spec, out.Write)
	return r, &out
}

// newMark returns a number that the processes of one test carry in their
// arguments, and no other.
func newMark() string { return fmt.Sprintf("%d", 1e15+rand.Int64N(8e15)) }

// marked lists the living processes with mark in their arguments or environment,
// except this one.
func marked(tb testing.TB, mark string) []tree.Process {
	tb.Helper()
	dir, err := os.Open("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		tb.Fatal(err)
	}
	var found []tree.Process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || !strings.Contains(arguments(tree.Process{PID: pid}), mark) && !inEnvironment(pid, mark) {
			continue
		}
		if p, err := tree.Read(pid); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// inEnvironment reports whether a process was started with mark in its environment.
func inEnvironment(pid int, mark string) bool {
	env, _ := os.ReadFile("/proc/" + itoa(pid) + "/environ")
	return bytes.Contains(env, []byte(mark))
}

// arguments of a process; a dead one that was not waited for has none.
func arguments(p tree.Process) string {
	text, _ := os.ReadFile("/proc/" + itoa(p.PID) + "/cmdline")
	return strings.ReplaceAll(string(text), "\x00", " ")
}

// noneMarked fails if something with mark lives.
func noneMarked(tb testing.TB, mark string) {
	tb.Helper()
	for _, p := range marked(tb, mark) {
		tb.Errorf("still alive: %+v %s", p, arguments(p))
	}
	if tb.Failed() {
		tb.FailNow()
	}
}

// killMarked ends what a broken stop left, so that it does not disturb others.
func killMarked(tb testing.TB, mark string) {
	tb.Helper()
	l := &tree.Ladder{
		Bound: time.Minute, Signal: tree.Signal, SignalGroup: tree.SignalGroup,
		Tree: func() ([]tree.Process, error) { return marked(tb, mark), nil },
	}
	if hit, left := l.Run(); hit+left > 0 {
		tb.Errorf("%d processes were left, %d could not be killed", hit, left)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// commandName is what a process calls itself.
func commandName(pid int) string {
	name, _ := os.ReadFile("/proc/" + itoa(pid) + "/comm")
	return strings.TrimSpace(string(name))
}

// exists reports whether a file is there.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// agent is a helper process that can be killed like a fermata.
type agent struct {
	*exec.Cmd
	id tree.Identity
}

// startAgent starts a helper that starts the command of job.
func startAgent(tb testing.TB, job agentJob) *agent {
	tb.Helper()
	input, err := json.Marshal(job)
	if err != nil {
		tb.Fatal(err)
	}

	a := &agent{Cmd: exec.Command("/proc/self/exe")}
	a.Env = append(os.Environ(), helperVariable+"=agent")
	a.Stdin = bytes.NewReader(input)
	a.Stderr = os.Stderr
	out, err := a.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := a.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.kill)
	if len(job.Spec.Argv) > 0 {
		if err := json.NewDecoder(out).Decode(&a.id); err != nil {
			tb.Fatalf("identity of the helper's command: %v", err)
		}
	}
	return a
}

// kill is kill -9, and waits.
func (a *agent) kill() {
	_ = a.Process.Kill()
	_ = a.Wait()
}
