package proc

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if IsShim() {
		// Not os.Exit, which takes a second under the race detector.
		syscall.Exit(ShimMain(Confiner{Apply: confineForTest}))
	}
	if part := os.Getenv(helperVariable); part != "" {
		os.Exit(helperMain(part))
	}
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil { // unless the command line says otherwise
		panic(err)
	}
	os.Exit(m.Run())
}

// confineForTest stands for the sandbox: it sets a mark on the calling thread
// that the command inherits and that /proc shows, or fails.
func confineForTest(spec json.RawMessage) (*os.File, error) {
	var s struct {
		Mark bool
		Fail string
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, err
	}
	if s.Fail != "" {
		return nil, errors.New(s.Fail)
	}
	if s.Mark {
		return nil, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return nil, nil
}

// helperVariable makes the test binary play another part.
const helperVariable = "FERMATA_PROC_HELPER"

func helperMain(part string) int {
	switch part {
	case "ask":
		return askMain()
	case "hostile":
		return hostileMain()
	case "agent":
		return agentMain()
	case "hermit":
		return hermitMain()
	case "mounter":
		return mounterMain()
	case "root":
		return rootMain()
	case "stopper":
		return stopperMain()
	}
	fmt.Fprintln(os.Stderr, "unknown part", part)
	return 2
}

// agentMain is a fermata that can be killed: it starts the command that it is
// given, tells its identity and waits.
func agentMain() int {
	var job agentJob
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		return 3
	}

	if string(job.Spec.Confine) == "null" {
		job.Spec.Confine = nil
	}
	s, err := NewSpawner()
	if err != nil {
		return 4
	}
	if job.Warm {
		s.warm(kind{scoped: true, staged: true})
	}
	if len(job.Spec.Argv) == 0 {
		select {} // only the spare is wanted
	}

	if job.Lease > 0 {
		s.Lease(time.Now().Add(job.Lease))
		go func() {
			for range time.Tick(job.Lease / 10) {
				s.Lease(time.Now().Add(job.Lease))
			}
		}()
	}
	c, err := s.Start(contextForHelper(), job.Spec, nil)
	if err != nil {
		return 5
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.Identity()); err != nil {
		return 6
	}
	if job.Hold {
		select {} // never released
	}
	c.Release()
	c.Wait()
	return 0
}

// agentJob is what agentMain reads.
type agentJob struct {
	Spec Spec
	Warm bool
	Hold bool

	Lease time.Duration // renewed all the time, if not 0
}

// rootMain is started as a set-uid program: it becomes root for good, so that
// its starter may not signal it, and stays.
func rootMain() int {
	if err := unix.Setreuid(0, 0); err != nil {
		return 3
	}
	if err := os.WriteFile(os.Args[1], nil, 0o600); err != nil {
		return 4
	}
	for {
		_ = unix.Pause()
	}
}
