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

// TestFullRealDisk applies a patch on a small disk that is filled a bit more
// each time, until nothing fits.
func TestFullRealDisk(t *testing.T) {
	dir := realDir(t)
	const size, page = 384 << 10, 4096
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})

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
