package draw

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	"github.com/fermata-agent/fermata/internal/transcript"
)

func message(id int, text string) *transcript.Item {
	return &transcript.Item{ID: fmt.Sprint(id), Kind: transcript.Message, Status: transcript.Done, Text: text, Start: start, End: now}
}

func windowCommand(id int, status transcript.Status, output string) *transcript.Item {
	it := &transcript.Item{
		ID: fmt.Sprint(id), Kind: transcript.Call, Status: status, Tool: "shell", Command: []string{"bash", "-lc", "run"},
		Output: output, Start: start,
	}
	if status != transcript.Open {
		it.End = now
	}
	return it
}

// frame is the window as a person sees it.
func windowFrame(title string, v *View) string {
	var b strings.Builder
	lines := v.Lines(now)
	fmt.Fprintf(&b, "-- %s (following %v, %d below)\n", title, v.Following(), v.Below())
	for _, line := range lines {
		line = ansi.Strip(line)
		b.WriteString(line + strings.Repeat(" ", max(0, v.w-safetext.Width(line))) + "│\n")
	}
	return b.String()
}

func TestWindowFrames(t *testing.T) {
	v := NewView(mono)
	v.SetSize(40, 10)
	got := windowFrame("empty", v)
	v.Put(&transcript.Item{ID: "u", Kind: transcript.User, Status: transcript.Done, Text: "please run it"})
	v.Put(windowCommand(1, transcript.Open, numbers(3)))
	got += windowFrame("little", v)
	v.Put(windowCommand(1, transcript.Done, numbers(30)))
	v.Put(message(2, "It ran.\n\n漢字 and **more** words that go on and on until they do not fit"))
	got += windowFrame("full", v)
	v.ScrollBy(-3)
	got += windowFrame("up by three", v)
	v.Put(message(3, "news below"))
	got += windowFrame("news below do not move it", v)
	v.Toggle(false)
	got += windowFrame("the command expanded", v)
	v.PageDown()
	got += windowFrame("page down", v)
	v.SetSize(60, 8)
	got += windowFrame("wider and lower", v)
	v.Toggle(false)
	got += windowFrame("folded again", v)
	v.Top()
	got += windowFrame("top", v)
	v.Bottom()
	got += windowFrame("bottom", v)
	tuitest.Golden(t, "window", got)
}

func TestLinesAreExactlyTheHeight(t *testing.T) {
	v := NewView(mono)
	for _, h := range []int{0, 1, 5, 100} {
		v.SetSize(20, h)
		if n := len(v.Lines(now)); n != h {
			t.Errorf("empty: %d lines, want %d", n, h)
		}
	}
	for i := range 50 {
		v.Put(message(i, "some words that need more than one line"))
	}
	for _, h := range []int{0, 1, 5, 100, 1000} {
		v.SetSize(20, h)
		if n := len(v.Lines(now)); n != h {
			t.Errorf("full: %d lines, want %d", n, h)
		}
	}
}

func TestReset(t *testing.T) {
	v := NewView(mono)
	v.SetSize(40, 3)
	for i := range 20 {
		v.Put(message(i, "words"))
	}
	v.Top()
	v.Lines(now)
	if v.Reset(); !v.Following() || v.Below() != 0 {
		t.Errorf("reset, but following %v, %d below", v.Following(), v.Below())
	}
	if got := strings.Join(v.Lines(now), ""); got != "" || !v.Following() || v.Below() != 0 || v.heights.sum(len(v.heights.values)) != 0 {
		t.Errorf("after a reset: %q, following %v, %d below", got, v.Following(), v.Below())
	}
	for i := range 5 {
		v.Put(message(i, "new"))
	}
	v.Top()
	for i := range v.cells {
		v.draw(i)
	}
	if v.Lines(now); v.Below() != 6 {
		t.Errorf("%d lines below, want 6", v.Below())
	}
}

func TestRunningTimePasses(t *testing.T) {
	v := NewView(mono)
	v.SetSize(40, 4)
	v.Put(windowCommand(1, transcript.Open, ""))
	for _, after := range []int{12, 13} {
		got := strings.Join(v.Lines(start.Add(time.Duration(after)*time.Second)), "\n")
		if want := fmt.Sprintf("running · %d s", after); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
}

func TestAt(t *testing.T) {
	v := NewView(mono)
	v.SetSize(40, 5)
	v.Put(message(1, "one"))
	v.Put(message(2, "two"))
	v.Lines(now)
	var got []string
	for line := -1; line < 6; line++ {
		got = append(got, v.At(line))
	}
	if want := "|1|2|2|||"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
}

// What is far away is not kept, and is drawn again when one comes back.
func TestForgets(t *testing.T) {
	v := NewView(mono)
	v.SetSize(40, 10)
	const n = 3000
	for i := range n {
		v.Put(message(i, fmt.Sprintf("message %d", i)))
	}
	v.Top()
	for range n {
		v.PageDown()
		v.Lines(now)
	}
	held := 0
	for _, e := range v.cells {
		held += len(e.lines)
	}
	if held > maxLines || len(v.drawn) > maxCells+10 || held != v.lines {
		t.Errorf("%d lines of %d cells are kept, counted as %d", held, len(v.drawn), v.lines)
	}
	v.Top()
	if got := strings.TrimSpace(ansi.Strip(v.Lines(now)[0])); got != "message 0" {
		t.Errorf("first line %q", got)
	}
	v.Bottom()
	if got := strings.TrimSpace(ansi.Strip(v.Lines(now)[9])); got != fmt.Sprintf("message %d", n-1) {
		t.Errorf("last line %q", got)
	}
}

// One cell with more lines than are kept is still shown.
func TestForgetsAroundAGiant(t *testing.T) {
	v := NewView(mono)
	v.SetSize(40, 3)
	v.Put(windowCommand(1, transcript.Done, numbers(maxLines+100)))
	v.Put(message(2, "end"))
	v.Toggle(true)
	v.Bottom()
	for range 5 {
		if got := v.Lines(now); !strings.Contains(got[2], "end") {
			t.Fatalf("got %q", got)
		}
	}
	v.Top()
	if got := v.Lines(now); !strings.Contains(ansi.Strip(got[1]), "line 1") {
		t.Errorf("got %q", got)
	}
}
