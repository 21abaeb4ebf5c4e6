package patch

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// bigFile returns a file of about 1 MB, the same with 100 places changed, and
// the patch between them.
func bigFile(b *testing.B) (old, new, text string) {
	b.Helper()
	const lines = 24000
	old, new = manyLines(lines, 0), manyLines(lines, lines/100)
	text = makePatch(map[string]string{"/w/big": old}, map[string]string{"/w/big": new})
	if n := strings.Count(text, "\n@@"); n != 100 {
		b.Fatalf("%d chunks", n)
	}
	return old, new, text
}

// BenchmarkBigFile verifies a patch of 100 chunks on a file of 1 MB, in memory.
func BenchmarkBigFile(b *testing.B) {
	old, new, text := bigFile(b)
	mem := NewMem(map[string]string{"/w/big": old})
	b.SetBytes(int64(len(old)))
	for b.Loop() {
		p, err := syntax.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		plan, err := Verify(b.Context(), mem, workDir, p)
		if err != nil {
			b.Fatal(err)
		}
		if plan.Files[0].After.Data != new {
			b.Fatal("wrong result")
		}
	}
}

// BenchmarkBigFileLoose is the same with every context line matched loosely.
func BenchmarkBigFileLoose(b *testing.B) {
	old, _, text := bigFile(b)
	mem := NewMem(map[string]string{"/w/big": strings.ReplaceAll(old, "\n", " \t\n")})
	for b.Loop() {
		p, err := syntax.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Verify(b.Context(), mem, workDir, p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBigFileMiss is the error message for a chunk that is not in the file.
func BenchmarkBigFileMiss(b *testing.B) {
	old, _, _ := bigFile(b)
	mem := NewMem(map[string]string{"/w/big": old})
	p, err := syntax.Parse("*** Begin Patch\n*** Update File: big\n line 9 with\n-line 10 with other text to make it longer\n+x\n*** End Patch\n")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Verify(b.Context(), mem, workDir, p); err == nil {
			b.Fatal("found")
		}
	}
}

// BenchmarkBigFileDiff is the diff of the 100 chunks for clients.
func BenchmarkBigFileDiff(b *testing.B) {
	old, new, _ := bigFile(b)
	for b.Loop() {
		if unified(old, new, 1) == "" {
			b.Fatal("no diff")
		}
	}
}

func manyFiles() (map[string]string, string) {
	files := map[string]string{}
	var text strings.Builder
	text.WriteString("*** Begin Patch\n")
	for i := range 1000 {
		name := fmt.Sprintf("d%d/f%d.txt", i%20, i)
		files[name] = fmt.Sprintf("one\ntwo %d\nthree\n", i)
		fmt.Fprintf(&text, "*** Update File: %s\n one\n-two %d\n+TWO\n", name, i)
	}
	text.WriteString("*** End Patch\n")
	return files, text.String()
}

// BenchmarkThousandFilesVerify parses and verifies a patch of 1,000 files, on
// disk.
func BenchmarkThousandFilesVerify(b *testing.B) {
	dir := realDir(b)
	files, text := manyFiles()
	for name, data := range files {
		write(b, filepath.Join(dir, name), data, 0o644)
	}
	for b.Loop() {
		p, err := syntax.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Verify(b.Context(), OS{}, dir, p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkThousandFilesApply applies and takes back a patch of 1,000 files on
// disk, with all syncs: the figure is for one of the two.
func BenchmarkThousandFilesApply(b *testing.B) {
	dir := realDir(b)
	files, text := manyFiles()
	for name, data := range files {
		write(b, filepath.Join(dir, name), data, 0o644)
	}
	p, err := syntax.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := Verify(b.Context(), OS{}, dir, p)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Apply(b.Context(), OS{}, plan, plan.Record(), ignoreRecord); err != nil {
			b.Fatal(err)
		}
		plan = plan.Reverse()
	}
}

// BenchmarkThousandFilesMemory is the same without a disk.
func BenchmarkThousandFilesMemory(b *testing.B) {
	files, text := manyFiles()
	mem := NewMem(nil)
	for name, data := range files {
		mem.Put(workDir+"/"+name, data, 0o644)
	}
	p, err := syntax.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := Verify(b.Context(), mem, workDir, p)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Apply(b.Context(), mem, plan, plan.Record(), ignoreRecord); err != nil {
			b.Fatal(err)
		}
		plan = plan.Reverse()
	}
}
