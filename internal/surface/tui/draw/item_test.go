package draw

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var (
	start = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	end   = start.Add(3200 * time.Millisecond)
	now   = start.Add(12 * time.Second)

	colours = theme.New(theme.Options{Dark: true, Color: true})
	mono    = theme.New(theme.Options{})
)

// frame draws items one after another as a person sees them: without escape
// codes, a bar at the right edge.
func itemFrame(o Options, items ...named) string {
	var b strings.Builder
	for _, n := range items {
		fmt.Fprintf(&b, "-- %s, %d columns", n.name, o.Width)
		if o.Expanded {
			b.WriteString(", expanded")
		}
		b.WriteString("\n")
		for _, line := range Item(n.item, o) {
			line = ansi.Strip(line)
			b.WriteString(line + strings.Repeat(" ", max(0, o.Width-safetext.Width(line))) + "│\n")
		}
	}
	return b.String()
}

type named struct {
	name string
	item *transcript.Item
}

func item(k transcript.Kind, s transcript.Status) *transcript.Item {
	it := &transcript.Item{ID: "1.1.0", Kind: k, Turn: 1, Status: s, Start: start}
	if s != transcript.Open && s != transcript.Asking {
		it.End = end
	}
	return it
}

func textItem(k transcript.Kind, s transcript.Status, text string) *transcript.Item {
	it := item(k, s)
	it.Text = text
	return it
}

func command(s transcript.Status, script, output string) *transcript.Item {
	it := item(transcript.Call, s)
	it.Tool, it.Command, it.Cwd, it.Output = "shell", []string{"bash", "-lc", script}, "/w", output
	return it
}

func with(it *transcript.Item, change func(*transcript.Item)) *transcript.Item {
	change(it)
	return it
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

const wide = "漢字かな交じり文の長い行は二桁の幅を持つ文字で折り返される。emoji 👨‍👩‍👧 and 🇩🇪 too, and averyveryveryveryveryveryverylongword"

// hostile is text that tries to act on the terminal.
const hostile = "\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\a\x1b]52;c;Zm9v\a\u009b31mc1 \u202eesrever\u202c bell\a nul\x00 \x1bPq\x1b\\dcs\ttab\rover\n\x1b[?1049hnext\x7f"

var kinds = map[string][]named{
	"user": {
		{"short", textItem(transcript.User, transcript.Done, "fix the bug in parse.go, please")},
		{"lines", textItem(transcript.User, transcript.Done, "first\n\n  second\n")},
		{"long", textItem(transcript.User, transcript.Done, numbers(40))},
		{"wide", textItem(transcript.User, transcript.Done, wide)},
		{"hostile", textItem(transcript.User, transcript.Done, hostile)},
	},
	"message": {
		{"open", textItem(transcript.Message, transcript.Open, "I will look at **the par")},
		{"done", textItem(transcript.Message, transcript.Done, "# Done\n\nThe parser is *fixed*:\n- one\n- two\n\n```go\nfunc main() {}\n```\n")},
		{"cut", textItem(transcript.Message, transcript.Interrupted, "I will look at the parser and th")},
		{"empty", textItem(transcript.Message, transcript.Done, "")},
		{"wide", textItem(transcript.Message, transcript.Done, wide)},
		{"hostile", textItem(transcript.Message, transcript.Done, hostile+" &#27;[31m &#x9b;1m")},
	},
	"reasoning": {
		{"begun", textItem(transcript.Reasoning, transcript.Open, "")},
		{"open", textItem(transcript.Reasoning, transcript.Open, "**Reading the code**\n\nThe parser has a loop that never ends if the input is empty, I think.\n\n**Finding the test**\n\nmore")},
		{"done", textItem(transcript.Reasoning, transcript.Done, "The parser has a loop that never ends if the input is empty, I think; so it must be changed.")},
		{"cut", textItem(transcript.Reasoning, transcript.Interrupted, "The parser")},
		{"hostile", textItem(transcript.Reasoning, transcript.Done, hostile)},
	},
	"command": {
		{"open", command(transcript.Open, "go test ./...", numbers(9))},
		{"open, no output", command(transcript.Open, "sleep 60", "")},
		{"done", command(transcript.Done, "ls", "a\nb\n")},
		{"done, long", command(transcript.Done, "seq 100", numbers(100))},
		{"failed", with(command(transcript.Failed, "make", "cc: no such file\n"), func(it *transcript.Item) { it.ExitCode = 2; it.Cwd = "/w/sub" })},
		{"ended by a signal", with(command(transcript.Failed, "./crash", ""), func(it *transcript.Item) { it.ExitCode, it.Signal = -1, "SIGSEGV" })},
		{"not run", with(command(transcript.Failed, "nosuch", "no such file or directory"), func(it *transcript.Item) { it.ExitCode = -1 })},
		{"timed out", with(command(transcript.Failed, "sleep 600", ""), func(it *transcript.Item) { it.TimedOut = true })},
		{"cut", with(command(transcript.Interrupted, "sleep 600", "1\n"), func(it *transcript.Item) { it.Killed = 3 })},
		{"declined", command(transcript.Declined, "rm -rf /", "the user said no")},
		{"asking", with(command(transcript.Asking, "curl example.com", ""), func(it *transcript.Item) {
			it.Approval = &p.ApprovalRequested{Reason: "it wants the network"}
		})},
		{"script", command(transcript.Done, "for i in 1 2 3; do\n\techo $i\ndone\necho a\necho b\necho c", "1\n2\n3\na\nb\nc\n")},
		{"long lines", command(transcript.Done, strings.Repeat("echo hello; ", 12), strings.Repeat("0123456789", 20))},
		{"omitted", with(command(transcript.Done, "cat big", "head\ntail\n"), func(it *transcript.Item) { it.Omitted = 123456 })},
		{"progress", command(transcript.Open, "wget x", " 10%\r 20%\r 30%\ntwo\n100%|\b/\b-\x1b[1K\rdone\x1b[K")},
		{"wide", command(transcript.Done, "echo "+wide, wide)},
		{"hostile", command(transcript.Done, "printf "+hostile, hostile)},
		{"to background", with(command(transcript.Done, "server", "listening\n"), func(it *transcript.Item) { it.Background = 1 })},
		{"background", with(command(transcript.Open, "server", numbers(9)), func(it *transcript.Item) { it.Kind = transcript.Background; it.Background = 1 })},
		{"background cut", with(command(transcript.Interrupted, "server", "listening\n"), func(it *transcript.Item) {
			it.Kind, it.Background, it.Killed = transcript.Background, 1, 1
		})},
	},
	"tool": {
		{"open", with(item(transcript.Call, transcript.Open), func(it *transcript.Item) { it.Tool, it.Arguments = "view_image", `{"path":"a.png"}` })},
		{"done", with(item(transcript.Call, transcript.Done), func(it *transcript.Item) {
			it.Tool, it.Arguments, it.Output = "search", `{"query": "`+strings.Repeat("many words ", 12)+`"}`, numbers(9)
		})},
		{"failed", with(item(transcript.Call, transcript.Failed), func(it *transcript.Item) { it.Tool, it.Output = "search", "no such server" })},
		{"plan is shown elsewhere", with(item(transcript.Call, transcript.Done), func(it *transcript.Item) { it.Tool = "update_plan" })},
		{"nothing known", item(transcript.Call, transcript.Open)},
	},
	"patch": {
		{"open", patch(transcript.Open)},
		{"asking", with(patch(transcript.Asking), func(it *transcript.Item) { it.Approval = &p.ApprovalRequested{Reason: "outside of the directory"} })},
		{"done", patch(transcript.Done)},
		{"failed", with(patch(transcript.Failed), func(it *transcript.Item) { it.Output = "src/app.go: context not found:\nfunc old" })},
		{"cut", patch(transcript.Interrupted)},
		{"cut after it was applied", with(patch(transcript.Interrupted), func(it *transcript.Item) { it.Patch = &p.PatchResult{Applied: true} })},
		{"declined", patch(transcript.Declined)},
		{"many files", with(item(transcript.Call, transcript.Done), func(it *transcript.Item) {
			for i := range 12 {
				it.Changes = append(it.Changes, transcript.Change{Path: fmt.Sprintf("/w/f%d", i), Kind: "add", Added: 1, Diff: "+x\n"})
			}
		})},
		{"hostile", with(item(transcript.Call, transcript.Done), func(it *transcript.Item) {
			it.Changes = []transcript.Change{{Path: "/w/\x1b[31mx", Kind: "update", Diff: "@@ -1 +1 @@\n-" + strings.ReplaceAll(hostile, "\n", "\n+") + "\n"}}
		})},
	},
	"other": {
		{"plan", with(textItem(transcript.Plan, transcript.Done, "three steps"), func(it *transcript.Item) {
			it.Plan = []p.PlanStep{{Step: "read the code", Status: "completed"}, {Step: "change it, with care and without breaking anything else", Status: "in_progress"}, {Step: "run the tests", Status: "pending"}}
		})},
		{"notice", textItem(transcript.Notice, transcript.Done, "the conversation so far was summarised for the model")},
		{"warning", with(textItem(transcript.Notice, transcript.Done, "a record was lost here"), func(it *transcript.Item) { it.Warn = true })},
		{"retry", textItem(transcript.Retry, transcript.Done, "retry 1 of 5 in 0.2 s: the connection broke")},
		{"stopped", textItem(transcript.End, transcript.Done, "interrupted after 12 s · 1 command, 3 processes killed · 2 files changed · reply kept")},
		{"failed", with(textItem(transcript.End, transcript.Done, "failed after 1.0 s: no credit left · add some"), func(it *transcript.Item) { it.Warn = true })},
		{"hostile", textItem(transcript.Notice, transcript.Done, hostile)},
	},
}

func patch(s transcript.Status) *transcript.Item {
	it := item(transcript.Call, s)
	it.Tool, it.Cwd = "apply_patch", "/w"
	it.Changes = transcript.Changes(json.RawMessage(`{"/w/new.txt":{"add":{"content":"a\nb"}},"/w/old":"delete",` +
		`"/w/src/app.go":{"update":{"unified_diff":"@@ -9,3 +9,3 @@\n a\n-\tb\n+\tB\n c\n@@ -100 +100,16 @@\n x\n` + strings.Repeat(`+more and more\n`, 15) + `","move_path":"/w/src/main.go"}}}`))
	return it
}

func TestItemFrames(t *testing.T) {
	for name, items := range kinds {
		t.Run(name, func(t *testing.T) {
			var got string
			for _, width := range []int{40, 80, 120} {
				got += itemFrame(Options{Width: width, Theme: mono, Now: now, Dir: "/w"}, items...)
			}
			got += itemFrame(Options{Width: 80, Theme: mono, Now: now, Dir: "/w", Expanded: true}, items...)
			tuitest.Golden(t, name, got)
		})
	}
}

// The colours, with the escape character made visible.
func TestColours(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"user", "message", "reasoning", "command", "tool", "patch", "other"} {
		for _, n := range kinds[name] {
			fmt.Fprintf(&b, "-- %s: %s\n", name, n.name)
			for _, line := range Item(n.item, Options{Width: 60, Theme: colours, Now: now, Dir: "/w"}) {
				b.WriteString(strings.ReplaceAll(line, "\x1b", "␛") + "\n")
			}
		}
	}
	tuitest.Golden(t, "colours", b.String())
}

// With a program to open them, names of files are links to it, and as wide as before.
func TestLinks(t *testing.T) {
	o := Options{Width: 40, Theme: mono, Dir: "/w", Opener: "cursor"}
	plain := Item(patch(transcript.Done), Options{Width: 40, Theme: mono, Dir: "/w"})
	linked := Item(patch(transcript.Done), o)
	if !strings.Contains(strings.Join(linked, "\n"), "\x1b]8;;cursor://file/w/") {
		t.Errorf("no link in %q", linked)
	}
	for i := range plain {
		if ansi.Strip(linked[i]) != ansi.Strip(plain[i]) || safetext.Width(linked[i]) != safetext.Width(plain[i]) {
			t.Errorf("%q instead of %q", linked[i], plain[i])
		}
	}
}

func TestHiddenReasoning(t *testing.T) {
	it := textItem(transcript.Reasoning, transcript.Done, "hm")
	if lines := Item(it, Options{Width: 40, Theme: mono, HideReasoning: true}); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}
