package fleet

import (
	"flag"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	_ "unsafe" // for linkname
)

// The server takes the age of messages from a clock of its own that one goroutine of
// the process sets. In a synctest bubble it would not go with the bubble's time, so
// the tests set it: refs makes the server believe that the goroutine runs.

//go:linkname clock github.com/nats-io/nats-server/v2/server/ats.utime
var clock atomic.Int64

//go:linkname clockUsers github.com/nats-io/nats-server/v2/server/ats.refs
var clockUsers atomic.Int64

// Tests with servers and processes of their own run side by side, after those in synctest bubbles: they share the server's clock,
// and wait more than they compute.
const sideBySide = "6"

func TestMain(m *testing.M) {
	clockUsers.Add(1)
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", sideBySide) // it is a number
	}
	for _, user := range []string{"alice", "alice-node", "bob", "bob-node"} {
		os.Setenv(passwordOf(user), "secret-of-"+user) // deploy/nats/users.conf reads them
	}
	code := runWithGit(m)
	endThree()
	if binaryDir != "" {
		os.RemoveAll(binaryDir)
	}
	if races() > 0 {
		code = max(code, 1)
	}
	os.Exit(code)
}

// runWithGit runs the tests with settings of git that are not the user's.
func runWithGit(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	settings := filepath.Join(dir, "gitconfig")
	text := "[user]\n\tname = t\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("GIT_CONFIG_GLOBAL", settings)
	os.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	return m.Run()
}

// races reports what the race detector found in processes, and returns how many of them had something.
var races = func() int { return 0 }

// runClock sets the server's clock until the test ends.
func runClock(t testing.TB) {
	stop, done := make(chan struct{}), make(chan struct{})
	clock.Store(time.Now().UnixNano())
	go func() { // until the test ends
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				clock.Store(time.Now().UnixNano())
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
}
