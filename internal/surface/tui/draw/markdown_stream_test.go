package draw

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/safetext"
)

// pieces are what makes trouble when a text is cut anywhere.
var pieces = []string{
	"word ", "a", " ", "  ", "    ", "\n", "\n", "\n\n", "- ", "1. ", "> ", "# ", "```", "```go\n", "~~~\n", "`", "*", "**", "_", "~~", "[x](y)", "[", "](", "|", "| a | b |\n|---|--:|\n",
	"| c | d |\n", "---\n", "===\n", "<div>", "<!--", "-->", "<br>", "&#27;", "&amp;", "\\", "\t", "\r", "\r\n", "\x1b[31m", "\x1b]0;x", "\a", "漢字", "👨‍👩‍👧", "e\u0301", "\u202e", "\xff",
	"func main() { /* x */ }\n", `"`, "'", "/*", "*/", "http://a.b/c", "- [x] ", "averyveryverylongwordthatdoesnotfit",
}

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// A stream shows at every moment what Render shows of the text so far, however
// the text was cut into pieces.
func TestStreamEqualsRender(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	texts := []string{sample(t)}
	for range longtest.Default(300, 100) {
		texts = append(texts, randomText(r, 60))
	}
	for _, src := range texts {
		width := 5 + r.IntN(80)
		s := newMarkdownStream(width, colours)
		for at := 0; at < len(src); {
			n := min(len(src)-at, 1+r.IntN(1+r.IntN(12)))
			s.Write(src[at : at+n])
			at += n
			if r.IntN(4) == 0 {
				continue // nobody looks
			}
			if d := cmp.Diff(Markdown(src[:at], width, colours), s.Lines()); d != "" {
				t.Fatalf("%q at %d (-render +stream):\n%s", src[:at], width, d)
			}
		}
		if s.Len() != len(src) {
			t.Fatalf("length %d, want %d", s.Len(), len(src))
		}
	}
}

// What a stream has settled is what a drawing of only that text shows: cutting
// at an empty line changes nothing.
func TestBlocksAreIndependent(t *testing.T) {
	a, b := "para *one*\n\n", "# two\n\n- x\n"
	whole := Markdown(a+b, 40, colours)
	parts := append(append(Markdown(a, 40, colours), ""), Markdown(b, 40, colours)...)
	if d := cmp.Diff(parts, whole); d != "" {
		t.Errorf("(-parts +whole):\n%s", d)
	}
}

// However long a list grows, only a piece of it is drawn again.
func TestOpenBlockStaysSmall(t *testing.T) {
	s := newMarkdownStream(80, colours)
	for i := range 10_000 {
		s.Write(fmt.Sprintf("%d. some item\n   and more\n", i))
		if n := len(s.whole.block); n > 2*maxHeldLines {
			t.Fatalf("%d lines are drawn again and again", n)
		}
	}
}

// harm is what is wrong with a line, if anything.
func harm(line string, width int) string {
	if w := safetext.Width(line); w > width {
		return fmt.Sprintf("it is %d wide, want %d", w, width)
	}
	for rest := line; rest != ""; rest = rest[1:] {
		if strings.HasPrefix(rest, "\x1b[") {
			code, after, ok := strings.Cut(rest[2:], "m")
			if !ok || strings.Trim(code, "0123456789;") != "" {
				return "an escape sequence"
			}
			rest = "m" + after
		}
		if rest[0] < ' ' || rest[0] == 0x7f {
			return "a control character"
		}
	}
	if strings.ContainsAny(line, "\u0085\u009b\u202e\u2028") {
		return "a hidden character"
	}
	for on, off := range map[string]string{"38;5;": "39", "1m": "22", "3m": "23", "4m": "24", "7m": "27", "9m": "29"} {
		if strings.LastIndex(line, "\x1b["+on) > strings.LastIndex(line, "\x1b["+off+"m") {
			return "a colour that stays on"
		}
	}
	return ""
}

func checkText(t *testing.T, src string, width int) {
	t.Helper()
	for _, line := range Markdown(src, width, colours) {
		if what := harm(line, width); what != "" {
			t.Fatalf("%q at %d: %q: %s", src, width, line, what)
		}
	}
}

func TestRandomText(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range longtest.Default(4000, 1500) {
		checkText(t, randomText(r, 40), 1+r.IntN(60))
	}
}

func TestDeepNesting(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("> ", 2000) + "x", strings.Repeat("- ", 2000) + "x", strings.Repeat("[", 2000), strings.Repeat("*", 4001) + "x",
		strings.Repeat("|", 2000) + "\n" + strings.Repeat("|-", 2000),
	} {
		checkText(t, src, 40)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(sample(f), uint8(40))
	for _, p := range pieces {
		f.Add(p+p, uint8(9))
	}
	f.Fuzz(func(t *testing.T, src string, width uint8) {
		w := max(1, int(width))
		checkText(t, src, w)
		s := newMarkdownStream(w, colours)
		for i := range len(src) {
			s.Write(src[i : i+1])
			if i%7 == 0 {
				s.Lines()
			}
		}
		if d := cmp.Diff(Markdown(src, w, colours), s.Lines()); d != "" {
			t.Fatalf("(-render +stream):\n%s", d)
		}
	})
}

// answer is a text like a long answer of a model.
func answer(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "## Step %d\n\nSome **words** about `code` that explain what is done here and why it matters.\n\n- one\n- two\n\n```go\nfunc f%d() int {\n\treturn %d // so\n}\n```\n\n", i, i, i)
	}
	return b.String()
}

// BenchmarkStream writes 20,000 pieces of five bytes and looks after each.
func BenchmarkStream(b *testing.B) {
	const deltas, size = 20_000, 5
	src := answer(deltas * size)
	for b.Loop() {
		s := newMarkdownStream(100, colours)
		for i := range deltas {
			s.Write(src[i*size : (i+1)*size])
			s.Lines()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/delta")
}

// BenchmarkDelta is one piece at the end of a short and of a long text.
func BenchmarkDelta(b *testing.B) {
	for _, size := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(size, " bytes"), func(b *testing.B) {
			before := answer(size)
			next := answer(5000)
			s := newMarkdownStream(100, colours)
			s.Write(before)
			for i := 0; b.Loop(); i++ {
				at := i * 5 % 5000
				s.Write(next[at : at+5])
				s.Lines()
			}
		})
	}
}

func BenchmarkRender(b *testing.B) {
	src := answer(100_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		runtime.KeepAlive(Markdown(src, 100, colours))
	}
}

// BenchmarkOneLine is a line that does not end, the worst case.
func BenchmarkOneLine(b *testing.B) {
	src := strings.Repeat("some **words** ", 4000)
	for b.Loop() {
		runtime.KeepAlive(Markdown(src, 100, colours))
	}
}
