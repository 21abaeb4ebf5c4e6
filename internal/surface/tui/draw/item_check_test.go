package draw

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// harmless reports what is wrong with a line: it is too wide, it holds a control
// character that is not part of our own colours, or a colour stays on.
func harmless(line string, width int) string {
	if w := safetext.Width(line); w > width {
		return "too wide"
	}
	rest := line
	for rest != "" {
		if strings.HasPrefix(rest, "\x1b[") {
			code, after, ok := strings.Cut(rest[2:], "m")
			if !ok || strings.Trim(code, "0123456789;") != "" {
				return "an escape sequence"
			}
			rest = after
			continue
		}
		if strings.IndexFunc(rest[:1], func(r rune) bool { return r < ' ' || r == 0x7f }) == 0 {
			return "a control character"
		}
		rest = rest[1:]
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

func TestHarmlessKnowsHarm(t *testing.T) {
	for line, want := range map[string]string{
		"ok \x1b[1mbold\x1b[22m": "", "0123456789ab": "too wide", "\x1b[2J": "an escape sequence", "\x1b]0;x\a": "a control character",
		"\r": "a control character", "\u202e": "a hidden character", "\x1b[1mx": "a colour that stays on",
	} {
		if got := harmless(line, 10); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

var statuses = []transcript.Status{
	transcript.Open, transcript.Asking, transcript.Done, transcript.Failed, transcript.Interrupted, transcript.Declined,
}

// everywhere is an item with the text in every place that is drawn.
func everywhere(kind transcript.Kind, s transcript.Status, text string, choice int) *transcript.Item {
	it := item(kind, s)
	it.Text, it.Tool, it.Arguments, it.Output, it.Cwd = text, text, text, text, text
	it.Plan = []p.PlanStep{{Step: text, Status: text}, {Step: text, Status: "completed"}}
	it.Approval = &p.ApprovalRequested{Reason: text}
	switch choice % 3 {
	case 0:
		it.Command = []string{"bash", "-lc", text}
	case 1:
		it.Changes = []transcript.Change{{Path: text, Move: text, Kind: "update", Diff: text}, {Path: "x", Diff: "@@ -1 +1 @@\n-" + text}}
	}
	return it
}

var allKinds = []transcript.Kind{
	transcript.User, transcript.Message, transcript.Reasoning, transcript.Call, transcript.Plan, transcript.Notice, transcript.Retry,
	transcript.End, transcript.Background,
}

func checkItem(t *testing.T, text string, width, choice int) {
	t.Helper()
	it := everywhere(allKinds[choice%len(allKinds)], statuses[choice/7%len(statuses)], text, choice)
	for _, expanded := range []bool{false, true} {
		for _, th := range []*theme.Theme{colours, mono} {
			for _, line := range Item(it, Options{Width: width, Theme: th, Now: now, Expanded: expanded, Dir: "/w"}) {
				if what := harmless(line, width); what != "" {
					t.Fatalf("%s %s of %q at %d: %q holds %s", it.Kind, it.Status, text, width, line, what)
				}
			}
		}
	}
}

func FuzzCell(f *testing.F) {
	for i, s := range []string{hostile, wide, numbers(30), "@@ -1,2 +3,4 @@\n+a\n-b\n c\n\\ no", "@@ -99999999999999999999 +1 @@\n+x", "\x1b[", "- a\n  - b\n\n> q", ""} {
		f.Add(s, uint8(20*i), uint16(i))
	}
	f.Fuzz(func(t *testing.T, s string, width uint8, choice uint16) {
		checkItem(t, s, max(1, int(width)), int(choice))
	})
}

func TestRandomItems(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range longtest.Default(3000, 1000) {
		var b strings.Builder
		for range r.IntN(20) {
			b.WriteString(itemPieces[r.IntN(len(itemPieces))])
		}
		checkItem(t, b.String(), 1+r.IntN(60), r.IntN(1000))
	}
}

var itemPieces = []string{
	"\x1b[31m", "\x1b]0;", "\a", "\r", "\b", "\t", "漢字", "word ", " ", "\n", "\u0301", "👨‍👩‍👧", "\xff", "\u009b", "\u202e", "`", "**", "- ", "> ", "```\n", "| a | b |\n|---|---|\n",
	"@@ -1 +1 @@\n", "+", "-", "\\", "[x](y)", "&#27;", "averylongwordthatdoesnotfit",
}

func TestFoldable(t *testing.T) {
	for name, tt := range map[string]struct {
		item *transcript.Item
		want bool
	}{
		"short output":  {command(transcript.Done, "ls", numbers(6)), false},
		"long output":   {command(transcript.Done, "ls", numbers(7)), true},
		"wide output":   {command(transcript.Done, "ls", strings.Repeat("x", 100)), true},
		"long script":   {command(transcript.Done, numbers(6), ""), true},
		"reasoning":     {textItem(transcript.Reasoning, transcript.Done, "x"), true},
		"message":       {textItem(transcript.Message, transcript.Done, numbers(100)), false},
		"patch":         {patch(transcript.Done), true},
		"user":          {textItem(transcript.User, transcript.Done, numbers(22)), true},
		"user, shorter": {textItem(transcript.User, transcript.Done, numbers(21)), false},
	} {
		o := Options{Width: 80, Theme: mono, Now: now, Dir: "/w"}
		folded := Item(tt.item, o)
		o.Expanded = true
		if got := Foldable(tt.item, o); got != tt.want {
			t.Errorf("%s: foldable is %v", name, got)
		}
		if differs := !cmp.Equal(folded, Item(tt.item, o)); differs != tt.want {
			t.Errorf("%s: expanding it makes a difference: %v", name, differs)
		}
	}
}

// A Live shows at every moment what Render shows.
func TestLive(t *testing.T) {
	whole := "# Title\n\nSome *text* with `code`.\n\n```go\nfunc main() {\n}\n```\n\n1. one\n2. two\n\n> quote"
	var l liveItem
	it := textItem(transcript.Message, transcript.Open, "")
	check := func(width int) {
		t.Helper()
		o := Options{Width: width, Theme: colours, Now: now}
		if d := cmp.Diff(Item(it, o), l.Render(it, o)); d != "" {
			t.Fatalf("%q at %d (-render +live):\n%s", it.Text, width, d)
		}
	}
	for i := range len(whole) {
		it.Text = whole[:i]
		check(12 + i/10)
	}
	check(40)
	it.Text = "something else" + it.Text
	check(40)
	it.Text, it.Status = "short", transcript.Interrupted
	check(40)
	*it = *command(transcript.Open, "ls", "x")
	check(40)
}

// What grows is drawn with every frame, so even expanded only its end is shown.
func TestLongOutputThatGrows(t *testing.T) {
	o := Options{Width: 80, Theme: mono, Now: now, Expanded: true, Dir: "/w"}
	if n := len(Item(command(transcript.Open, "ls", numbers(5000)), o)); n > liveLines+5 {
		t.Errorf("%d lines of a command that runs", n)
	}
	if n := len(Item(command(transcript.Done, "ls", numbers(5000)), o)); n != 5002 {
		t.Errorf("%d lines of a command that is done", n)
	}
}

// A progress bar that has been at it for long shows its last state.
func TestLongProgress(t *testing.T) {
	lines := Item(command(transcript.Open, "x", strings.Repeat(" 5%\r", 20_000)+"abc\rZ"), Options{Width: 80, Theme: mono, Now: now, Dir: "/w"})
	if lines[1] != "  Zbc" {
		t.Errorf("got %q", lines[1])
	}
}

func TestDiffOfATurn(t *testing.T) {
	changes := transcript.ParseDiff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	got := ansi.Strip(strings.Join(Diff(changes, Options{Width: 40, Theme: colours}), "\n"))
	if want := "  M x (+1 -1)\n    1 -a\n    1 +b"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// An item whose beginning was not seen has no age.
func TestNoAgeWithoutABeginning(t *testing.T) {
	it := command(transcript.Open, "ls", "")
	it.Start = it.End
	for _, line := range Item(it, Options{Width: 80, Theme: mono, Now: now}) {
		if strings.Contains(line, "h") || strings.Contains(line, " ms") {
			t.Errorf("line %q", line)
		}
	}
}
