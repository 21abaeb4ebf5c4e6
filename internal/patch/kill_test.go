//go:build unix

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// The child of TestKilledProcess is this test binary again, told by these
// variables where to work and before which operation to die.
const (
	killDir = "PATCH_TEST_KILL_DIR"
	killAt  = "PATCH_TEST_KILL_AT"
)

// TestKilledProcess has real processes apply the 20-file patch to a real disk
// and killed by SIGKILL at random points, and recovers after each.
func TestKilledProcess(t *testing.T) {
	total := killChild(t, newKillDir(t), -1)
	if total < 80 {
		t.Fatalf("the child did only %d operations", total)
	}
	rounds := longtest.Default(25, 8)
	if testing.Short() {
		rounds = 5
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	sides := map[bool]int{}
	for _, k := range r.Perm(total)[:rounds] {
		dir := newKillDir(t)
		killChild(t, dir, k)
		sides[recoverKilled(t, dir, k)]++
	}
	t.Logf("applied: %d, taken back: %d", sides[true], sides[false])
}

// newKillDir makes the files of the patch below files/ of a new directory.
func newKillDir(t *testing.T) string {
	t.Helper()
	dir := realDir(t)
	files, _ := twentyFiles()
	for name, data := range files {
		write(t, filepath.Join(dir, "files", name), data, 0o644)
	}
	if err := os.Symlink("u/f0", filepath.Join(dir, "files/link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// killChild runs the child and returns how many operations it did if it was not
// to die.
func killChild(t *testing.T, dir string, at int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
	cmd.Env = append(os.Environ(), killDir+"="+dir, fmt.Sprintf("%s=%d", killAt, at))
	out, err := cmd.CombinedOutput()
	if at < 0 {
		if err != nil {
			t.Fatalf("child: %v\n%s", err, out)
		}
		data, err := os.ReadFile(filepath.Join(dir, "count"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(string(data))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("child to be killed at %d: %v\n%s", at, err, out)
	}
	return 0
}

// recoverKilled does what a restart does, and checks that all or nothing of the
// patch is there.
func recoverKilled(t *testing.T, dir string, at int) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "record"))
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(dir, "committed"))
	committed := err == nil
	applied, err := Recover(OS{}, rec, committed)
	if err != nil || applied != committed {
		t.Fatalf("killed at %d: recovery says %v, %v; committed is %v", at, applied, err, committed)
	}
	want, text := twentyFiles()
	if applied {
		mem := NewMem(nil)
		for name, data := range want {
			mem.Put(workDir+"/"+name, data, 0o644)
		}
		mem.Put(workDir+"/link", "u/f0", fs.ModeSymlink|0o777)
		applyPlan(t, mem, planFor(t, mem, workDir, text))
		want = map[string]string{}
		for path, data := range contents(mem) {
			rel, _ := filepath.Rel(workDir, path)
			want[rel] = data
		}
	}
	expectFiles(t, filepath.Join(dir, "files"), want)
	_, err = os.Lstat(filepath.Join(dir, "files/link"))
	if (err == nil) == applied {
		t.Errorf("killed at %d: applied is %v, but the link: %v", at, applied, err)
	}
	_, err = os.Lstat(filepath.Join(dir, "files/new"))
	if (err == nil) != applied {
		t.Errorf("killed at %d: applied is %v, but the new directory: %v", at, applied, err)
	}
	return applied
}

// TestKillChild is the body of the child process.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("only for TestKilledProcess")
	}
	at, err := strconv.Atoi(os.Getenv(killAt))
	if err != nil {
		t.Fatal(err)
	}
	_, text := twentyFiles()
	plan := planFor(t, OS{}, filepath.Join(dir, "files"), text)
	rec := plan.Record()
	data, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if err := (OS{}).Create(filepath.Join(dir, "record"), data, 0, ""); err != nil {
		t.Fatal(err)
	}
	n := 0
	step := func(string, string, string) error {
		if n == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		n++
		return nil
	}
	fsys := &hookFS{FS: OS{}, hook: step}
	err = Apply(t.Context(), fsys, plan, rec, func(Record) error {
		_ = step("commit", "", "")
		return OS{}.Create(filepath.Join(dir, "committed"), nil, 0, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "count"), strconv.Itoa(n), 0o644)
}

// TestConcurrentPatches runs two patches on neighbouring files at once: the
// temporary files of one never disturb the other.
func TestConcurrentPatches(t *testing.T) {
	dir := realDir(t)
	errs := make(chan error)
	want := map[string]string{}
	for i := range 4 {
		files := map[string]string{fmt.Sprintf("a%d", i): "a\n"}
		maps.Copy(want, map[string]string{fmt.Sprintf("a%d", i): "b\n", fmt.Sprintf("n%d", i): "n\n"})
		for name, data := range files {
			write(t, filepath.Join(dir, name), data, 0o644)
		}
		plan := planFor(t, OS{}, dir, fmt.Sprintf("*** Begin Patch\n*** Update File: a%d\n-a\n+b\n*** Add File: n%d\n+n\n*** End Patch\n", i, i))
		go func() { errs <- Apply(t.Context(), OS{}, plan, plan.Record(), ignoreRecord) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	expectFiles(t, dir, want)
}
