package patch

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// The working directory of every patch of the corpus.
const workDir = "/w"

// TestCorpus runs the patches of testdata. Each file begins with what it is
// about and a line "expect: applied" or "expect: refused"; then come the patch
// and the files before it. Everything after "-- result --" is golden.
//
// Names: before/x is x in the working directory, before//x is /x; " -> y" after
// a name makes it a link, " mode=0755" gives it a mode, " dir" makes it a
// directory. In texts ␍ is a CR, ␄ a missing newline at the end, ␠ a space that
// editors would strip, and ␀ a NUL.
func TestCorpus(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 150 {
		t.Fatalf("the corpus has only %d patches", len(paths))
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) { runCase(t, path) })
	}
}

func runCase(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(data)
	mem, patch := loadCase(t, ar)
	before := dump(mem)
	got, plan := attempt(t, mem, patch)

	want := "refused"
	if plan != nil {
		want = "applied"
	}
	if !strings.Contains(string(ar.Comment), "expect: "+want+"\n") {
		t.Errorf("patch was %s, but that is not what the case says:\n%s%s", want, ar.Comment, got.Files[0].Data)
	}
	golden(t, path, ar, got)
	if plan == nil {
		if diff := cmp.Diff(before, dump(mem)); diff != "" {
			t.Errorf("a refused patch changed files (-before +now):\n%s", diff)
		}
		return
	}
	takeBack(t, mem, plan, before)
}

// attempt applies a patch and returns the golden part of its case; the plan is
// nil if the patch was refused.
func attempt(t *testing.T, mem *Mem, text string) (*txtar.Archive, *Plan) {
	t.Helper()
	ar := &txtar.Archive{}
	plan, err := verifyText(t, mem, text)
	if err != nil {
		ar.Files = append(ar.Files, txtar.File{Name: "result", Data: []byte(encode(err.Error()))})
		return ar, nil
	}

	rec := plan.Record()
	if err := Apply(t.Context(), mem, plan, rec, ignoreRecord); err != nil {
		t.Fatalf("apply: %v", err)
	}
	ar.Files = append(
		ar.Files,
		txtar.File{Name: "result", Data: []byte(plan.Summary())},
		txtar.File{Name: "changes", Data: []byte(encode(describe(plan)))},
	)
	for _, line := range dump(mem) {
		name, content, _ := strings.Cut(line, "\n")
		ar.Files = append(ar.Files, txtar.File{Name: "after/" + name, Data: []byte(encode(content))})
	}
	return ar, plan
}

func ignoreRecord(Record) error { return nil }

func verifyText(t *testing.T, fsys FS, text string) (*Plan, error) {
	t.Helper()
	p, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	return Verify(t.Context(), fsys, workDir, p)
}

// takeBack reverses an applied plan, after a detour through JSON, and expects
// everything to be as before.
func takeBack(t *testing.T, mem *Mem, plan *Plan, before []string) {
	t.Helper()
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var stored Plan
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, &stored); diff != "" {
		t.Fatalf("the plan does not survive JSON (-made +read):\n%s", diff)
	}
	back := stored.Reverse()
	if err := Apply(t.Context(), mem, back, back.Record(), ignoreRecord); err != nil {
		t.Fatalf("reverse: %v", err)
	}
	if diff := cmp.Diff(before, dump(mem)); diff != "" {
		t.Errorf("reversed patch did not restore everything (-before +now):\n%s", diff)
	}
}

// describe shows what clients are told about a plan.
func describe(p *Plan) string {
	changes := p.FileChanges()
	var paths []string
	for path := range changes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var b strings.Builder
	for _, path := range paths {
		c := changes[path]
		fmt.Fprintf(&b, "%s %s", c.Kind, path)
		if c.MovePath != "" {
			fmt.Fprintf(&b, " -> %s", c.MovePath)
		}
		fmt.Fprintf(&b, "\n%s", c.UnifiedDiff)
	}
	return b.String()
}

// dump lists all files of a file system, each as its name and attributes, a
// newline and its content.
func dump(m *Mem) []string {
	var lines []string
	for _, path := range m.Paths() {
		mode, data := m.entry(path)
		name, ok := strings.CutPrefix(path, workDir+"/")
		if !ok {
			name = path
		}
		switch {
		case path == workDir:
			continue
		case mode.IsDir():
			lines = append(lines, name+" dir\n")
		case mode.Type() == fs.ModeSymlink:
			lines = append(lines, name+" -> "+data+"\n")
		case mode.Perm() != 0o644:
			lines = append(lines, fmt.Sprintf("%s mode=%04o\n%s", name, mode.Perm(), data))
		default:
			lines = append(lines, name+"\n"+data)
		}
	}
	return lines
}

func loadCase(t *testing.T, ar *txtar.Archive) (*Mem, string) {
	t.Helper()
	mem := NewMem(nil)
	mem.Put(workDir, "", fs.ModeDir|0o755)
	patch, found := "", false
	for _, f := range ar.Files {
		text := decode(string(f.Data))
		if f.Name == "patch" {
			patch, found = text, true
		}
		if name, ok := strings.CutPrefix(f.Name, "before/"); ok {
			putFile(t, mem, name, text)
		}
	}
	if !found {
		t.Fatal("no patch in this case")
	}
	return mem, patch
}

func putFile(t *testing.T, mem *Mem, name, text string) {
	t.Helper()
	mode := fs.FileMode(0o644)
	if link, target, ok := strings.Cut(name, " -> "); ok {
		name, text, mode = link, target, fs.ModeSymlink|0o777
	}
	if dir, ok := strings.CutSuffix(name, " dir"); ok {
		name, mode = dir, fs.ModeDir|0o755
	}
	if file, octal, ok := strings.Cut(name, " mode="); ok {
		bits, err := strconv.ParseUint(octal, 8, 32)
		if err != nil {
			t.Fatal(err)
		}
		name, mode = file, fs.FileMode(bits)
	}
	if !strings.HasPrefix(name, "/") {
		name = workDir + "/" + name
	}
	mem.Put(name, text, mode)
}

var decoder = strings.NewReplacer("␄\n", "", "␍", "\r", "␠", " ", "␀", "\x00")

func decode(s string) string { return decoder.Replace(s) }

func encode(s string) string {
	s = strings.NewReplacer("\r", "␍", "\x00", "␀", " \n", "␠\n").Replace(s)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "␄\n"
	}
	return s
}

// golden compares the golden part of a case, or rewrites it.
func golden(t *testing.T, path string, ar, got *txtar.Archive) {
	t.Helper()
	at := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == "result" })
	if at < 0 {
		at = len(ar.Files)
	}
	whole := &txtar.Archive{Comment: ar.Comment, Files: slices.Concat(ar.Files[:at], got.Files)}
	if *update {
		if err := os.WriteFile(path, txtar.Format(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(txtar.Format(ar)), string(txtar.Format(whole))); diff != "" {
		t.Errorf("result differs from the golden one (-want +got):\n%s", diff)
	}
}
