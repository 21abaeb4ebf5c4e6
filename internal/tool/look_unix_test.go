//go:build unix

package tool

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// A pipe in the place of a file holds nobody up.
func TestLookingWaitsForNoPipe(t *testing.T) {
	dir := fileTree(t, map[string]string{"a.txt": "text\n"})
	for _, name := range []string{".gitignore", "pipe"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := &Files{}
	for tool, args := range map[Tool]string{
		&Read{Files: files}: `{"path":"pipe"}`, &List{Files: files}: `{}`, &Grep{Files: files}: `{"pattern":"text"}`,
	} {
		c := call(&fakeHost{}, dir, nil)
		c.Arguments = args
		res := tool.Run(t.Context(), c)
		if want := tool.Spec().Name == "read_file"; res.Output.Failed != want {
			t.Errorf("%s: %+v", tool.Spec().Name, res.Output)
		}
	}
}

// Whoever swaps a directory and a link while a file is read gets no file that
// the check did not see.
func TestReadFileIsNotLedAstray(t *testing.T) {
	dir := fileTree(t, map[string]string{"d/f": "public\n", "secret/f": "secret\n"})
	if err := os.Symlink("secret", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	r := &Read{Files: &Files{Secret: func(path string) bool { return strings.Contains(path, "/secret/") }}}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		d, l, x := filepath.Join(dir, "d"), filepath.Join(dir, "l"), filepath.Join(dir, "x")
		for !stop.Load() { // a name is a directory and a link in turn
			_ = os.Rename(d, x)
			_ = os.Rename(l, d)
			_ = os.Rename(d, l)
			_ = os.Rename(x, d)
		}
	}()
	read := 0
	rounds := longtest.Default(20_000, 6000)
	for i := 0; i < rounds || read == 0 && i < 100*rounds; i++ { // the name may be a link for long
		c := call(&fakeHost{}, dir, nil)
		c.Arguments = `{"path":"d/f"}`
		out := r.Run(t.Context(), c).Output.Output
		if strings.Contains(out, "secret\n") {
			t.Errorf("got %q", out)
			break
		}
		if strings.Contains(out, "public\n") {
			read++
		}
	}
	stop.Store(true)
	<-done
	if read == 0 {
		t.Error("the file was never read, so that this proves nothing")
	}
}

// What was checked and has become a link since then is not read.
func TestReadFileThatWasSwapped(t *testing.T) {
	for _, path := range []string{"d/f", "d"} {
		for _, of := range []func(*Files) Tool{func(f *Files) Tool { return &Read{f} }, func(f *Files) Tool { return &Grep{Files: f} }} {
			dir := fileTree(t, map[string]string{"d/f": "public\n", "secret/f": "secret\n"})
			tool := of(&Files{Secret: func(path string) bool {
				if d := filepath.Join(dir, "d"); os.Rename(d, d+"2") == nil {
					if err := os.Symlink("secret", d); err != nil {
						t.Error(err)
					}
				}
				return strings.Contains(path, "/secret/")
			}})
			out := tool.Run(t.Context(), call(&fakeHost{}, dir, params{"path": path, "pattern": "."})).Output.Output
			if strings.Contains(out, "secret\n") {
				t.Errorf("%s of %s reads %q", tool.Spec().Name, path, out)
			}
		}
	}
}
