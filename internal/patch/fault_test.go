package patch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
)

func TestCrashAtEveryStep(t *testing.T) {
	w := newTwenty(t)
	total := w.steps(t)
	for k := range total {
		s := w.crash(t, k)
		applied, err := Recover(s.mem, s.rec, s.committed)
		if err != nil {
			t.Fatalf("crash at %d: %v", k, err)
		}
		if applied != s.committed {
			t.Fatalf("crash at %d: applied is %v, committed %v", k, applied, s.committed)
		}
		w.expect(t, fmt.Sprintf("crash at %d", k), s.mem, applied)
		again, err := Recover(s.mem, s.rec, s.committed)
		if err != nil || again != applied {
			t.Fatalf("crash at %d: second recovery: %v, %v", k, again, err)
		}
		w.expect(t, fmt.Sprintf("crash at %d, recovered twice", k), s.mem, applied)
	}
}

// crash runs the patch until the process dies before operation k.
func (w *twenty) crash(t *testing.T, k int) *attemptState {
	t.Helper()
	n := 0
	s, err := w.run(t, t.Context(), func(s *attemptState, _, _, _ string) error {
		s.fsys.dead = n == k
		n++
		return nil
	})
	if err == nil && n > k && !s.fsys.dead {
		t.Fatalf("crash at %d did not happen", k)
	}
	return s
}

func TestCrashDuringRecovery(t *testing.T) {
	w := newTwenty(t)
	total := w.steps(t)
	stride := 1
	switch {
	case testing.Short():
		stride = 7
	case !longtest.On():
		stride = 6
	}
	for k := 0; k < total; k += stride {
		for j := 0; ; j++ {
			s := w.crash(t, k)
			n := 0
			broken := &hookFS{FS: s.mem}
			broken.hook = func(string, string, string) error {
				broken.dead = n == j
				n++
				return nil
			}
			if _, err := Recover(broken, s.rec, s.committed); err == nil && !broken.dead {
				break
			}
			applied, err := Recover(s.mem, s.rec, s.committed)
			if err != nil || applied != s.committed {
				t.Fatalf("crash at %d, then at %d of the recovery: %v, %v", k, j, applied, err)
			}
			w.expect(t, fmt.Sprintf("crash at %d, then at %d of the recovery", k, j), s.mem, applied)
		}
	}
}

// The commit is on disk, but the process died before it knew: or it was told
// that the commit failed, took everything back, and died during that.
func TestCrashAfterDoubtfulCommit(t *testing.T) {
	w := newTwenty(t)
	doubt := errors.New("no answer from the disk")
	for j := 0; ; j++ {
		n := -1
		s, err := w.run(t, t.Context(), func(s *attemptState, op, _, _ string) error {
			if op == "commit" {
				s.committed, n = true, 0
				return doubt
			}
			if n >= 0 {
				s.fsys.dead = n == j
				n++
			}
			return nil
		})
		if !s.fsys.dead {
			if !errors.Is(err, doubt) {
				t.Fatalf("got %v, want %v", err, doubt)
			}
			w.expect(t, "commit failed", s.mem, false)
		}
		applied, err := Recover(s.mem, s.rec, true)
		if err != nil {
			t.Fatalf("crash at %d after the commit: %v", j, err)
		}
		if applied && j > 0 {
			t.Fatalf("crash at %d after the commit: applied although it was being taken back", j)
		}
		w.expect(t, fmt.Sprintf("crash at %d after the commit", j), s.mem, applied)
		if n >= 0 && n <= j {
			return
		}
	}
}

func TestStopAtEveryStep(t *testing.T) {
	w := newTwenty(t)
	stop := errors.New("stopped by the user")
	for k := range w.steps(t) {
		ctx, cancel := context.WithCancelCause(t.Context())
		n, early, late := 0, false, 0
		s, err := w.run(t, ctx, func(s *attemptState, op, _, _ string) error {
			if early && op == "create" {
				late++
			}
			if n == k {
				cancel(stop)
				early = !s.committed && op != "commit"
			}
			n++
			return nil
		})
		cancel(nil)
		if early && late > 1 {
			t.Fatalf("stop at %d: %d files were still prepared", k, late)
		}
		if err != nil && !errors.Is(err, stop) {
			t.Fatalf("stop at %d: %v", k, err)
		}
		if early && err == nil {
			t.Fatalf("stop at %d, before the commit, was ignored", k)
		}
		if (err == nil) != s.committed {
			t.Fatalf("stop at %d: committed is %v, but the error is %v", k, s.committed, err)
		}
		w.expect(t, fmt.Sprintf("stop at %d", k), s.mem, err == nil)
	}
}

// takesSpace says whether an operation needs room on the disk. Putting an old
// content back does not: its name had room before.
func takesSpace(op, path string) bool {
	switch op {
	case "create", "symlink", "link", "mkdir":
		return true
	case "rename":
		return strings.HasSuffix(path, ".new")
	}
	return false
}

func TestFullDiskAtEveryStep(t *testing.T) {
	w := newTwenty(t)
	failed := 0
	for k := range w.steps(t) {
		n := 0
		s, err := w.run(t, t.Context(), func(_ *attemptState, op, path, _ string) error {
			n++
			if n > k && takesSpace(op, path) {
				return syscall.ENOSPC
			}
			return nil
		})
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("disk full from %d on: %v", k, err)
		}
		if err != nil && s.committed {
			failed++
		}
		w.expect(t, fmt.Sprintf("disk full from %d on (%v)", k, err), s.mem, err == nil)
	}
	if failed < 5 {
		t.Errorf("only %d runs failed after the commit: the retreat was hardly tested", failed)
	}
}

// One operation fails, whichever; the patch is there or not, and what could
// not be tidied up can be recovered.
func TestErrorAtEveryStep(t *testing.T) {
	w := newTwenty(t)
	for k := range w.steps(t) {
		n := 0
		s, err := w.run(t, t.Context(), func(*attemptState, string, string, string) error {
			n++
			if n-1 == k {
				return syscall.EIO
			}
			return nil
		})
		what := fmt.Sprintf("error at %d (%v)", k, err)
		var incomplete *IncompleteError
		switch {
		case errors.As(err, &incomplete), err == nil:
			applied, rerr := Recover(s.mem, s.rec, s.committed)
			if rerr != nil {
				t.Fatalf("%s: recover: %v", what, rerr)
			}
			if err == nil && !applied {
				t.Fatalf("%s: recovery took back what was applied", what)
			}
			w.expect(t, what, s.mem, applied)
		case errors.Is(err, syscall.EIO):
			w.expect(t, what, s.mem, false)
		default:
			t.Fatalf("%s: unexpected error", what)
		}
	}
}

// A second failure hits the retreat from a first one, and then the process dies
// or not.
func TestCrashDuringRetreat(t *testing.T) {
	w := newTwenty(t)
	retreats := 0
	seeds := longtest.Default(1500, 400)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		broken := 0
		s, err := w.run(t, t.Context(), func(s *attemptState, _, _, _ string) error {
			if s.committed && broken == 0 && r.IntN(15) == 0 {
				broken++
				return syscall.EIO
			}
			if broken > 0 && r.IntN(12) == 0 {
				s.fsys.dead = r.IntN(2) == 0
				return syscall.EIO
			}
			return nil
		})
		var incomplete *IncompleteError
		if err != nil && !errors.As(err, &incomplete) {
			w.expect(t, fmt.Sprintf("seed %d (%v)", seed, err), s.mem, false)
			continue
		}
		applied, rerr := Recover(s.mem, s.rec, s.committed)
		if rerr != nil {
			t.Fatalf("seed %d: %v", seed, rerr)
		}
		if !applied && s.committed {
			retreats++
		}
		if err == nil && !applied {
			t.Fatalf("seed %d: recovery took back what was applied", seed)
		}
		w.expect(t, fmt.Sprintf("seed %d (%v)", seed, err), s.mem, applied)
	}
	if retreats < seeds/30 {
		t.Errorf("only %d broken retreats: the test does not reach them", retreats)
	}
}

func TestRecoverKeepsLaterEdits(t *testing.T) {
	w := newTwenty(t)
	const edited = "edited by the user\n"
	for k := range w.steps(t) {
		s := w.crash(t, k)
		if !s.committed {
			continue
		}
		// Every file of the patch that exists is edited after the crash.
		var paths []string
		for _, step := range s.rec.Steps {
			if s.mem.Exists(step.Path) {
				s.mem.Put(step.Path, edited, 0o644)
				paths = append(paths, step.Path)
			}
		}
		_, err := Recover(s.mem, s.rec, true)
		var conflict *ConflictError
		if err != nil && !errors.As(err, &conflict) {
			t.Fatalf("crash at %d: %v", k, err)
		}
		for _, path := range paths {
			if _, data := s.mem.entry(path); data != edited {
				t.Fatalf("crash at %d: recovery lost the edit of %s", k, path)
			}
		}
		for _, path := range s.mem.Paths() {
			if strings.Contains(path, ".fermata-") {
				t.Fatalf("crash at %d: %s is left", k, path)
			}
		}
	}
}

func TestRecoverNamesConflicts(t *testing.T) {
	w := newTwenty(t)
	s, err := w.run(t, t.Context(), func(s *attemptState, op, _, _ string) error {
		s.fsys.dead = s.committed
		return nil
	})
	if err == nil {
		t.Fatal("the process did not die")
	}
	s.mem.Put(workDir+"/u/f1", "mine\n", 0o644)
	s.mem.Put(workDir+"/old/f2", "mine too\n", 0o644)
	applied, err := Recover(s.mem, s.rec, true)
	var conflict *ConflictError
	if !applied || !errors.As(err, &conflict) {
		t.Fatalf("got %v, %v", applied, err)
	}
	slices.Sort(conflict.Paths)
	if diff := cmp.Diff([]string{workDir + "/old/f2", workDir + "/u/f1"}, conflict.Paths); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), "/u/f1") {
		t.Errorf("message does not name the file: %v", err)
	}
	if got := contents(s.mem)[workDir+"/u/f2"]; got != "one\nTWO\nthree\n" {
		t.Errorf("the other files were not brought to the end: %q", got)
	}
}

// A user who puts deleted or changed files back after the end was reached, but
// before that was noted, does not make recovery take the rest back.
func TestRecoverAfterEndWithFilesPutBack(t *testing.T) {
	w := newTwenty(t)
	s, err := w.run(t, t.Context(), func(*attemptState, string, string, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	s.mem.Put(workDir+"/old/f2", "old 2\n", 0o644)
	s.mem.Put(workDir+"/u/f1", "one\ntwo 1\nthree\n", 0o600)
	want := dump(s.mem)
	applied, err := Recover(s.mem, s.rec, true)
	if err != nil || !applied {
		t.Fatalf("got %v, %v", applied, err)
	}
	if diff := cmp.Diff(want, dump(s.mem)); diff != "" {
		t.Errorf("recovery changed something (-before +after):\n%s", diff)
	}
}

// The process dies while it takes the patch back, and then somebody edits the
// files that it had not got to.
func TestRecoverBackKeepsLaterEdits(t *testing.T) {
	w := newTwenty(t)
	const edited = "edited by the user\n"
	failing, back := workDir+"/link", 0
	s, _ := w.run(t, t.Context(), func(s *attemptState, op, path, _ string) error {
		if s.committed && path == failing {
			return syscall.EIO // the last step: everything has to go back
		}
		if op == "rename" && strings.HasSuffix(path, ".old") {
			back++
			s.fsys.dead = back == 3
		}
		return nil
	})
	if !s.fsys.dead {
		t.Fatal("the process did not die")
	}
	s.mem.Put(workDir+"/u/f0", edited, 0o644)
	applied, err := Recover(s.mem, s.rec, true)
	var conflict *ConflictError
	if applied || !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, []string{workDir + "/u/f0"}) {
		t.Fatalf("got %v, %v", applied, err)
	}
	want := slices.Clone(w.before)
	for i, line := range want {
		if strings.HasPrefix(line, "u/f0 ") {
			want[i] = "u/f0\n" + edited
		}
	}
	if diff := cmp.Diff(want, dump(s.mem)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Before the commit no target is ours, whatever it looks like.
func TestRecoverUncommittedLeavesTargets(t *testing.T) {
	w := newTwenty(t)
	s, _ := w.run(t, t.Context(), func(s *attemptState, op, _, _ string) error {
		s.fsys.dead = op == "commit"
		return nil
	})
	if s.committed {
		t.Fatal("committed")
	}
	// The very file that the patch would have made.
	path := workDir + "/new/d0/f0"
	s.mem.Put(path, "new 0\n", 0o644)
	if applied, err := Recover(s.mem, s.rec, false); applied || err != nil {
		t.Fatalf("got %v, %v", applied, err)
	}
	want := slices.Concat(w.before, []string{"new dir\n", "new/d0 dir\n", "new/d0/f0\nnew 0\n"})
	slices.Sort(want)
	got := dump(s.mem)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A file in the place of a directory that the patch would have made stays.
func TestRecoverUncommittedLeavesFileForDirectory(t *testing.T) {
	w := newTwenty(t)
	s := w.crash(t, 0)
	s.mem.Put(workDir+"/new", "mine\n", 0o644)
	if applied, err := Recover(s.mem, s.rec, false); applied || err != nil {
		t.Fatalf("got %v, %v", applied, err)
	}
	if got := contents(s.mem)[workDir+"/new"]; got != "mine\n" {
		t.Errorf("the file is now %q", got)
	}
}

// A file that is to be removed and is gone by itself is no reason to retreat.
func TestRemovalOfVanishedFile(t *testing.T) {
	w := newTwenty(t)
	s, err := w.run(t, t.Context(), func(s *attemptState, op, path, _ string) error {
		if s.committed && op == "remove" && path == workDir+"/old/f1" {
			s.mem.Drop(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.expect(t, "file vanished", s.mem, true)
}
