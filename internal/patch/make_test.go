package patch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// makePatch returns the sections of a patch that turn the files before into the
// files after, both by path.
func makePatch(before, after map[string]string) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for _, path := range sortedKeys(before, after) {
		old, had := before[path]
		new, has := after[path]
		switch {
		case had && !has:
			fmt.Fprintf(&b, "*** Delete File: %s\n", path)
		case had && old != new:
			fmt.Fprintf(&b, "*** Update File: %s\n", path)
			b.WriteString(makeChunks(old, new))
		case !had:
			fmt.Fprintf(&b, "*** Add File: %s\n", path)
			for _, line := range newSource(new).lines {
				writeLine(&b, '+', line)
			}
		}
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}

func sortedKeys(all ...map[string]string) []string {
	var keys []string
	for _, files := range all {
		keys = slices.AppendSeq(keys, maps.Keys(files))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// makeChunks returns the chunks that turn one text into the other. Each has so
// much context that no earlier place fits as well.
func makeChunks(old, new string) string {
	const context = 3
	src := newSource(old)
	diff, err := udiff.ToUnifiedDiff("", "", old, lineEdits(old, new), context)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	cursor := 0
	for _, hunk := range diff.Hunks {
		start := hunk.FromLine - 1
		end := start
		for _, line := range hunk.Lines {
			if line.Kind != udiff.Insert {
				end++
			}
		}
		begin := start
		for begin > cursor && !findsAt(src, begin, end, cursor) {
			begin--
		}
		b.WriteString("@@\n")
		for _, line := range src.lines[begin:start] {
			writeLine(&b, ' ', line)
		}
		for _, line := range hunk.Lines {
			writeLine(&b, "-+ "[line.Kind], line.Content)
		}
		cursor = end
	}
	return b.String()
}

func findsAt(src *source, begin, end, cursor int) bool {
	at, ok := src.find(src.form(0)[begin:end], cursor, false)
	return ok && at == begin
}

func writeLine(b *strings.Builder, op byte, line string) {
	b.WriteByte(op)
	b.WriteString(strings.TrimSuffix(line, "\n"))
	b.WriteByte('\n')
	if !strings.HasSuffix(line, "\n") {
		b.WriteString("\\ No newline at end of file\n")
	}
}

// words for random texts: few, so that texts repeat themselves, and nasty.
var randomWords = []string{
	"", "", " ", "\t", "a", "a", "b", "}", "\t}", "return nil", "  return nil", "a ", "\ufeffa", "“q”", "\"q\"",
	"*** End Patch", "*** End of File", "@@", "@@ a", "-a", "+a", "\\ No newline at end of file", "é\u2028x", "\xff\xfe", "\r", "a\rb",
}

func randomText(r *rand.Rand) string {
	ends := [][]string{{"\n"}, {"\n"}, {"\r\n"}, {"\n", "\r\n"}}[r.IntN(4)]
	var b strings.Builder
	for range r.IntN(30) {
		b.WriteString(randomWords[r.IntN(len(randomWords))])
		b.WriteString(ends[r.IntN(len(ends))])
	}
	if r.IntN(3) == 0 {
		b.WriteString(randomWords[r.IntN(len(randomWords))])
	}
	return b.String()
}

// randomChange returns the text with some lines replaced, removed and added.
func randomChange(r *rand.Rand, text string) string {
	lines := newSource(text).lines
	other := newSource(randomText(r)).lines
	var b strings.Builder
	for _, line := range lines {
		switch r.IntN(8) {
		case 0:
			continue
		case 1:
			if len(other) > 0 {
				b.WriteString(other[r.IntN(len(other))])
			}
		}
		b.WriteString(line)
	}
	if r.IntN(4) == 0 {
		b.WriteString(randomWords[r.IntN(len(randomWords))])
	}
	return b.String()
}

func TestMadePatchGivesTarget(t *testing.T) {
	rounds := longtest.Default(3000, 1000)
	if testing.Short() {
		rounds = 300
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		before, after := map[string]string{}, map[string]string{}
		for i := range 1 + r.IntN(4) {
			path := fmt.Sprintf("%s/d%d/f%d", workDir, r.IntN(2), i)
			kind := r.IntN(6)
			if kind != 0 {
				before[path] = randomText(r)
			}
			if kind != 1 {
				after[path] = randomChange(r, before[path])
			}
		}
		text := makePatch(before, after)
		mem := NewMem(before)
		plan, err := verifyText(t, mem, text)
		if text == "*** Begin Patch\n*** End Patch\n" {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\nbefore: %q", seed, err, text, before)
		}
		original := dump(mem)
		if err := Apply(t.Context(), mem, plan, plan.Record(), ignoreRecord); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(after, contents(mem)); diff != "" {
			t.Fatalf("seed %d: patch gives something else (-want +got):\n%s\n%s\nbefore: %q", seed, diff, text, before)
		}
		takeBack(t, mem, plan, original)
	}
}

// contents returns the files by path.
func contents(m *Mem) map[string]string {
	files := map[string]string{}
	for _, path := range m.Paths() {
		if mode, data := m.entry(path); mode.IsRegular() {
			files[path] = data
		}
	}
	return files
}

// The diff that clients are shown is true: put together again, it gives both
// sides.
func TestDiffIsTrue(t *testing.T) {
	for seed := range 2000 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		old := randomText(r)
		new := randomChange(r, old)
		gotOld, gotNew := applyDiff(t, old, unified(old, new, 1))
		if gotOld != old || gotNew != new {
			t.Fatalf("seed %d: diff does not lead from %q to %q:\n%s", seed, old, new, unified(old, new, 1))
		}
	}
}

// applyDiff replays a unified diff on a text and returns both sides as the diff
// has them.
func applyDiff(t *testing.T, old, diff string) (before, after string) {
	t.Helper()
	lines := newSource(old).lines
	at := 0
	take := func(n int) {
		for ; at < n; at++ {
			before += lines[at]
			after += lines[at]
		}
	}
	diffLines := newSource(diff).lines
	for i, line := range diffLines {
		if strings.HasPrefix(line, "\\") {
			continue
		}
		if strings.HasPrefix(line, "@@ ") {
			var start int
			if _, err := fmt.Sscanf(line, "@@ -%d", &start); err != nil {
				t.Fatal(err)
			}
			take(max(start-1, 0))
			continue
		}
		text := line[1:]
		if i+1 < len(diffLines) && strings.HasPrefix(diffLines[i+1], "\\") {
			text = strings.TrimSuffix(text, "\n")
		}
		if line[0] != '+' {
			before += text
			at++
		}
		if line[0] != '-' {
			after += text
		}
	}
	take(len(lines))
	return before, after
}

// A diff of many changes stays a diff of many changes.
func TestDiffOfManyChanges(t *testing.T) {
	old, new := manyLines(5000, 0), manyLines(5000, 25)
	diff := unified(old, new, 1)
	if n := strings.Count(diff, "\n@@ ") + 1; n != 200 {
		t.Errorf("200 changes became %d hunks", n)
	}
	if n := strings.Count(diff, "\n"); n != 200*5 {
		t.Errorf("the diff has %d lines, want %d", n, 200*5)
	}
}

// manyLines returns numbered lines, every nth of them changed.
func manyLines(n, every int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d with some text to make it longer", i)
		if every > 0 && i%every == every/2 {
			b.WriteString(", changed")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
