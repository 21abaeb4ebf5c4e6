package patch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk mounts a disk of its own for the test.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := realDir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestMoveToAnotherDisk(t *testing.T) {
	here, there := realDir(t), smallDisk(t, 64<<10)
	write(t, filepath.Join(here, "a.txt"), "a\n", 0o640)
	plan := planFor(t, OS{}, here, fmt.Sprintf("*** Begin Patch\n*** Update File: a.txt\n*** Move to: %s/d/b.txt\n-a\n+b\n*** End Patch\n", there))
	applyPlan(t, OS{}, plan)
	expectFiles(t, here, map[string]string{})
	expectFiles(t, there, map[string]string{"d/b.txt": "b\n"})
	if info, err := os.Stat(filepath.Join(there, "d/b.txt")); err != nil || info.Mode() != 0o640 {
		t.Errorf("moved file: %v, %v", info, err)
	}
	applyPlan(t, OS{}, plan.Reverse())
	expectFiles(t, here, map[string]string{"a.txt": "a\n"})
	expectFiles(t, there, map[string]string{})
}

// TestFullRealDisk applies a patch on a small disk that is filled a bit more
// each time, until nothing fits.
func TestFullRealDisk(t *testing.T) {
	const size, page = 384 << 10, 4096
	dir := smallDisk(t, size)

	half := filepath.Join(dir, "half")
	if err := (OS{}).Create(half, make([]byte, 2*size), 0, ""); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a file that is too large: %v", err)
	}
	if _, err := os.Lstat(half); err == nil {
		t.Error("half a file was left")
	}

	before := map[string]string{}
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for i := range 10 {
		name := fmt.Sprintf("f%d", i)
		before[name] = fmt.Sprintf("one\n%s\n", strings.Repeat("x", page))
		fmt.Fprintf(&b, "*** Update File: %s\n-one\n+two\n*** Add File: d/n%d\n+%s\n", name, i, strings.Repeat("y", page))
	}
	b.WriteString("*** End Patch\n")
	failed, done := 0, 0
	for used := 0; used < size; used += 2 * page {
		for name, data := range before {
			write(t, filepath.Join(dir, name), data, 0o644)
		}
		plan := planFor(t, OS{}, dir, b.String())
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, used), 0o644); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		}
		err := Apply(t.Context(), OS{}, plan, plan.Record(), ignoreRecord)
		if rmErr := os.Remove(filler); rmErr != nil {
			t.Fatal(rmErr)
		}
		if err != nil {
			failed++
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d bytes used: %v", used, err)
			}
			expectFiles(t, dir, before)
			continue
		}
		done++
		if data, err := os.ReadFile(filepath.Join(dir, "f9")); err != nil || !strings.HasPrefix(string(data), "two\n") {
			t.Fatalf("%d bytes used: f9 is %q, %v", used, data, err)
		}
		applyPlan(t, OS{}, plan.Reverse())
		expectFiles(t, dir, before)
	}
	if failed < 5 || done < 5 {
		t.Errorf("%d runs failed and %d did not: the disk has the wrong size", failed, done)
	}
}
