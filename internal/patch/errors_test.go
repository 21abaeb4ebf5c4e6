package patch

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// refusal returns the error of a patch on one file.
func refusal(t *testing.T, content, body string) *syntax.Error {
	t.Helper()
	mem := NewMem(map[string]string{"/w/f.go": content})
	_, err := verifyText(t, mem, "*** Begin Patch\n*** Update File: f.go\n"+body+"*** End Patch\n")
	var e *syntax.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	return e
}

func TestErrorFieldsOfAMissedChunk(t *testing.T) {
	got := refusal(t, "package f\n\nfunc A() {\n\treturn one\n}\n", "@@\n func A() {\n-\treturn two\n+\treturn 2\n")
	want := &syntax.Error{
		Line: 4, File: "f.go", Problem: "these lines are not in the file",
		Wanted:  []string{"func A() {", "\treturn two"},
		Nearest: []string{"func A() {", "\treturn one"}, NearestLine: 3,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(syntax.Error{}, "Hint")); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	for _, part := range []string{"patch line 5", "line 4 of the file", `"\treturn one"`} {
		if !strings.Contains(got.Hint, part) {
			t.Errorf("the hint lacks %s: %s", part, got.Hint)
		}
	}
}

func TestErrorFieldsOfAMissedAnchor(t *testing.T) {
	got := refusal(t, "package f\n\nfunc Alpha() {\n}\n", "@@ func Alpah() {\n+\treturn\n")
	want := &syntax.Error{
		Line: 3, File: "f.go", Problem: "the anchor is not in the file",
		Wanted:  []string{"func Alpah() {"},
		Nearest: []string{"func Alpha() {"}, NearestLine: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// Of equally good places the one below the cursor is the nearest.
func TestNearestIsBelowTheCursor(t *testing.T) {
	content := "x := 1\ny := compute(x)\nend\nx := 1\ny := compute(x)\nend\n"
	got := refusal(t, content, "@@\n end\n@@\n x := 1\n-y := compute(z)\n+y := 2\n")
	if got.NearestLine != 4 {
		t.Errorf("nearest is line %d, want 4", got.NearestLine)
	}
	if want := "these lines are not in the file below line 3"; got.Problem != want {
		t.Errorf("problem is %q, want %q", got.Problem, want)
	}
}

func TestErrorMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("-nothing like it\n", 500)
	got := refusal(t, "a\n", "@@\n"+long+"+x\n").Error()
	if n := strings.Count(got, "\n"); n > 2*12+5 {
		t.Errorf("the message has %d lines", n)
	}
	_, err := syntax.Parse("*** Begin Patch\n" + strings.Repeat("ä", 5000) + "\n*** End Patch\n")
	if err == nil || len(err.Error()) > 500 || strings.Contains(err.Error(), `\x`) {
		t.Errorf("message of %d bytes: %.200v", len(err.Error()), err)
	}
}

// deniedFS may not be read.
type deniedFS struct{ *Mem }

func (deniedFS) ReadFile(path string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
}

func TestErrorKeepsItsCause(t *testing.T) {
	mem := NewMem(map[string]string{"/w/f": "a\n"})
	_, err := verifyText(t, deniedFS{mem}, "*** Begin Patch\n*** Delete File: f\n*** End Patch\n")
	var e *syntax.Error
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrPermission) || e.File != "f" || e.Line != 2 {
		t.Errorf("got %v", err)
	}
	// Unlike a stop, it is the patch's fault and goes to the model.
	if !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("message: %v", err)
	}
}

func TestIncompleteErrorKeepsItsCause(t *testing.T) {
	w := newTwenty(t)
	s, err := w.run(t, t.Context(), func(s *attemptState, op, _, _ string) error {
		if s.committed && (op == "rename" || op == "remove") {
			return syscall.EROFS
		}
		return nil
	})
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || !errors.Is(err, syscall.EROFS) {
		t.Fatalf("got %v", err)
	}
	// Nothing had been put back yet, so the way forward is open.
	applied, err := Recover(s.mem, s.rec, true)
	if err != nil {
		t.Fatal(err)
	}
	w.expect(t, "after the cause is gone", s.mem, applied)
}

func TestResolver(t *testing.T) {
	mem := NewMem(map[string]string{"/w/d/f": "", "/other/x/f": ""})
	for link, target := range map[string]string{
		"/w/l": "d", "/w/abs": "/other/x", "/w/up": "../other", "/w/chain": "l/../abs/./", "/w/flink": "d/f",
		"/w/dangling": "no/where", "/w/loop": "loop",
	} {
		mem.Put(link, target, fs.ModeSymlink|0o777)
	}
	r := resolver{mem.Lstat, mem.Readlink}
	tests := []struct{ path, file, entry string }{
		{"/w/d/f", "/w/d/f", "/w/d/f"},
		{"/w//d/./f", "/w/d/f", "/w/d/f"},
		{"/w/l/f", "/w/d/f", "/w/d/f"},
		{"/w/abs/f", "/other/x/f", "/other/x/f"},
		{"/w/abs/../y", "/other/y", "/other/y"},
		{"/w/up/x/f", "/other/x/f", "/other/x/f"},
		{"/w/chain/f", "/other/x/f", "/other/x/f"},
		{"/w/flink", "/w/d/f", "/w/flink"},
		{"/w/dangling", "/w/no/where", "/w/dangling"},
		{"/w/dangling/new", "/w/no/where/new", "/w/no/where/new"},
		{"/w/new/../also", "/w/also", "/w/also"},
		{"/../../w/d", "/w/d", "/w/d"},
		{"/", "/", "/"},
	}
	for _, tt := range tests {
		if got, err := r.file(tt.path); got != tt.file || err != nil {
			t.Errorf("file %s: %s, %v; want %s", tt.path, got, err, tt.file)
		}
		if got, err := r.entry(tt.path); got != tt.entry || err != nil {
			t.Errorf("entry %s: %s, %v; want %s", tt.path, got, err, tt.entry)
		}
	}
	for _, path := range []string{"/w/loop", "/w/loop/x"} {
		if got, err := r.file(path); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	if got, err := r.entry("/w/d/f/x"); err == nil {
		t.Errorf("below a file: %s", got)
	}
}
