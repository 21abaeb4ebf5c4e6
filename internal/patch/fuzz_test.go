package patch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// FuzzPatch feeds any text to the parser and, if it parses, tries it on a file:
// nothing panics, errors have a line, and what is applied can be taken back.
func FuzzPatch(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		text, content := "", ""
		for _, file := range txtar.Parse(data).Files {
			if file.Name == "patch" {
				text = decode(string(file.Data))
			} else if strings.HasPrefix(file.Name, "before/") {
				content = decode(string(file.Data))
			}
		}
		f.Add(text, content)
	}
	f.Fuzz(func(t *testing.T, text, content string) {
		p, err := syntax.Parse(text)
		if err != nil {
			var e *syntax.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Error() == "" {
				t.Fatalf("not a good error: %#v", err)
			}
			return
		}
		mem := NewMem(map[string]string{"/w/a.txt": content, "/w/a.go": content, "/w/d/x": "x\n"})
		for i := range p.Sections {
			// Most made-up names are of no file; half of the updates get one.
			if p.Sections[i].Kind == syntax.Update && len(p.Sections[i].Path)%2 == 0 {
				p.Sections[i].Path = "a.txt"
			}
		}
		tryPatch(t, mem, p)
	})
}

func tryPatch(t *testing.T, mem *Mem, p *syntax.Patch) {
	t.Helper()
	before := dump(mem)
	plan, err := Verify(t.Context(), mem, workDir, p)
	if err != nil {
		var e *syntax.Error
		if !errors.As(err, &e) || e.Error() == "" {
			t.Fatalf("not a good error: %#v", err)
		}
		return
	}
	for path, c := range plan.FileChanges() {
		if path == "" || c.Kind == "" {
			t.Fatalf("bad change %q: %+v", path, c)
		}
	}
	_ = plan.Summary() + plan.Diff(workDir)
	if err := Apply(t.Context(), mem, plan, plan.Record(), ignoreRecord); err != nil {
		t.Fatalf("verified, but: %v", err)
	}
	back := plan.Reverse()
	if err := Apply(context.WithoutCancel(t.Context()), mem, back, back.Record(), ignoreRecord); err != nil {
		t.Fatalf("reverse: %v", err)
	}
	if diff := cmp.Diff(before, dump(mem)); diff != "" {
		t.Fatalf("not as before (-before +after):\n%s", diff)
	}
}

// FuzzMade makes the patch between any two texts: it gives the second.
func FuzzMade(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n")
	f.Add("a\r\nb", "a\nb\r\n")
	f.Add("", "\ufeff\n\n")
	f.Add("x\nx\nx\nx\n", "x\nx\ny\nx\nx")
	f.Fuzz(func(t *testing.T, old, new string) {
		if old == new {
			return
		}
		p, err := syntax.Parse(makePatch(map[string]string{"/f": old}, map[string]string{"/f": new}))
		if err != nil {
			t.Fatal(err)
		}
		got, problem := edit(old, p.Sections[0].Chunks)
		if problem != nil {
			t.Fatal(problem)
		}
		if got != new {
			t.Fatalf("got %q, want %q", got, new)
		}
	})
}
