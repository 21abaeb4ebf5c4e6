package protocol

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/longtest"
)

func omitted(n, of int) string { return fmt.Sprintf("[... omitted %d of %d bytes ...]\n", n, of) }

func TestShorten(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	lines := func(n int) string { return strings.Repeat("123456789\n", n) }
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"one line", "a\n", "a\n"},
		{"as many bytes as are shown", x(shownBytes), x(shownBytes)},
		{"one byte more", x(shownBytes + 1), x(shownBytes/2) + "\n" + omitted(1, shownBytes+1) + x(shownBytes/2)},
		{"many lines", lines(shownBytes), lines(shownBytes/20) + omitted(shownBytes*9, shownBytes*10) + lines(shownBytes/20)},
		{
			"no part of a line", lines(1000) + x(9_990) + "\n" + lines(3000),
			lines(1000) + x(9_990) + "\n" + omitted(10_000, 49_991) + lines(2000),
		},
	} {
		if got := Shorten(tt.in); got != tt.want {
			t.Errorf("%s: got %s\nwant %s", tt.name, brief(got), brief(tt.want))
		}
	}
}

func TestShortenCountsWhatIsMissingAlready(t *testing.T) {
	got := ShortenTo(strings.Repeat("x", 100), 50, 1000)
	want := strings.Repeat("x", 25) + "\n" + omitted(1050, 1100) + strings.Repeat("x", 25)
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// brief shows a long text by its ends.
func brief(s string) string {
	if len(s) < 200 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%d bytes %q … %q", len(s), s[:80], s[len(s)-80:])
}

// checkShortened checks what must hold for every text.
func checkShortened(t *testing.T, in, got string, n int) {
	t.Helper()
	if len(in) <= n {
		if got != in {
			t.Errorf("a short text was changed: %s became %s", brief(in), brief(got))
		}
		return
	}
	if utf8.ValidString(in) && !utf8.ValidString(got) {
		t.Errorf("cut within a rune: %s", brief(got))
	}
	// The text itself may hold such a mark: ours parts it into its two ends.
	for at := range got {
		var missing, total int
		rest, ok := strings.CutPrefix(got[at:], "[... omitted ")
		if c, _ := fmt.Sscanf(rest, "%d of %d bytes ...]", &missing, &total); !ok || c != 2 || total != len(in) {
			continue
		}
		head := got[:at]
		_, tail, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(in, head) {
			head = strings.TrimSuffix(head, "\n")
		}
		if strings.HasPrefix(in, head) && strings.HasSuffix(in, tail) && missing == len(in)-len(head)-len(tail) && len(head)+len(tail) <= n {
			return
		}
	}
	t.Errorf("no correct mark: %s became %s", brief(in), brief(got))
}

func TestShortenAnyText(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	runes := []rune("ab é世🙂")
	many := longtest.Default(300, 100)
	if testing.Short() {
		many = 50
	}
	for range many {
		var b strings.Builder
		perLine := 1 + r.IntN(1<<r.IntN(14))
		for n := r.IntN(30000); b.Len() < n; {
			b.WriteRune(runes[r.IntN(len(runes))])
			if r.IntN(perLine) == 0 {
				b.WriteByte('\n')
			}
		}
		n := 100 + r.IntN(20_000)
		checkShortened(t, b.String(), CutMiddle(b.String(), n), n)
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("", 1)
	f.Add(strings.Repeat("é\n", 1000), 333)
	f.Add("[... omitted 1 of 2 bytes ...]\n", 4)
	f.Fuzz(func(t *testing.T, in string, n int) {
		if n >= 0 && utf8.ValidString(in) {
			checkShortened(t, in, CutMiddle(in, n), n)
		}
	})
}
