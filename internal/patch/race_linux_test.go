package patch

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

var swaps = flag.Int("swaps", longtest.Default(10000, 300), "how often TestSwappedDirectories swaps, at least")

// A swapper exchanges a directory and a symbolic link all the time, as a command
// of the model could.
type swapper struct {
	count atomic.Int64
	stop  chan struct{}
	done  chan struct{}
}

func startSwapper(a, b string) *swapper {
	s := &swapper{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			select {
			case <-s.stop:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				s.count.Add(1)
			}
			for range rand.IntN(2000) { // now fast, now slow: to hit every moment
				runtime.Gosched()
			}
		}
	}()
	return s
}

func (s *swapper) end() {
	close(s.stop)
	<-s.done
}

// Whoever swaps a directory of the workspace and a link while a patch is
// staged, checked, renamed, taken back or recovered, moves nothing of it to where
// the link points.
func TestSwappedDirectories(t *testing.T) {
	work, outside := realDir(t), realDir(t)
	write(t, filepath.Join(work, "d/sub/a.txt"), "a\n", 0o644)
	write(t, filepath.Join(outside, "sub/a.txt"), "a\n", 0o644)
	if err := os.Symlink(outside, filepath.Join(work, "l")); err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1e9, 0) // whatever is made or removed there changes a time
	for _, dir := range []string{"sub", "."} {
		if err := os.Chtimes(filepath.Join(outside, dir), long, long); err != nil {
			t.Fatal(err)
		}
	}
	s := startSwapper(filepath.Join(work, "d"), filepath.Join(work, "l"))
	defer s.end()
	applied, refused := 0, 0
	for int(s.count.Load()) < *swaps || applied == 0 || refused == 0 {
		if patchOnce(t, work) {
			applied++
		} else {
			refused++
		}
	}
	t.Logf("%d swaps, %d patches applied, %d refused", s.count.Load(), applied, refused)
	expectFiles(t, outside, map[string]string{"sub/a.txt": "a\n"})
	for _, dir := range []string{"sub", "."} {
		if info, err := os.Stat(filepath.Join(outside, dir)); err != nil || !info.ModTime().Equal(long) {
			t.Errorf("something was written to %s outside: %v, %v", dir, info.ModTime(), err)
		}
	}
}

// patchOnce changes a file, adds one, and takes both back, by undoing and by
// recovering. What a swap prevents it leaves.
func patchOnce(t *testing.T, work string) bool {
	t.Helper()
	parsed, err := syntax.Parse("*** Begin Patch\n*** Add File: d/sub/a.txt\n+A\n*** Add File: d/new/b.txt\n+b\n*** End Patch\n")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Verify(t.Context(), OS{}, work, parsed)
	if err != nil {
		return false
	}
	for _, path := range plan.Paths() {
		if !strings.HasPrefix(path, work+"/") {
			return false // a link was there: policy would refuse it
		}
	}
	rec := plan.Record()
	errStop := errors.New("stop")
	if err := Apply(t.Context(), OS{}, plan, rec, func(Record) error { return errStop }); !errors.Is(err, errStop) {
		return false
	}
	err = Apply(t.Context(), OS{}, plan, rec, ignoreRecord)
	var incomplete *IncompleteError
	if errors.As(err, &incomplete) {
		_, _ = Recover(OS{}, rec, true)
	}
	back := plan.Reverse()
	undoErr := Apply(t.Context(), OS{}, back, back.Record(), ignoreRecord)
	if errors.As(undoErr, &incomplete) {
		_, _ = Recover(OS{}, rec, false)
	}
	return err == nil && undoErr == nil
}
