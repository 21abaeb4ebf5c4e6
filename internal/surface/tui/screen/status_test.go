package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestWhatGoesOn(t *testing.T) {
	now := time.Unix(100, 0)
	idle := &transcript.Transcript{}
	runs := &transcript.Transcript{Active: true, Started: now.Add(-5 * time.Second), Title: "fix it"}
	for _, tc := range []struct {
		state       State
		text, title string
	}{
		{State{Transcript: idle}, "ready · /help", "fermata"},
		{State{Transcript: idle, Begun: true}, "ready · /help", "✓ done · fermata"},
		{State{Transcript: idle, Busy: true}, "⠋ sending…", "⠧ working · fermata"},
		{State{Transcript: idle, Begun: true, Loading: true, Percent: 40}, "⠋ loading… 40 %", "✓ done · fermata"},
		{State{Transcript: runs, Busy: true, Frame: 11}, "⠙ working 5 s · Esc stops", "⠧ working · fix it"},
		{State{Transcript: runs, Busy: true, Planning: true}, "⠋ planning 5 s · Esc stops", "⠧ working · fix it"},
		{State{Transcript: runs, Busy: true, Asking: true}, "● waiting for your answer 5 s", "● waiting · fix it"},
		{State{Transcript: runs, Busy: true, Asking: true, Stopping: true}, "⠋ stopping…", "● waiting · fix it"},
		{State{Transcript: runs, Busy: true, Stopping: true, Quitting: true}, "⠋ stopping the turn, then quitting…", "⠧ working · fix it"},
	} {
		if text, _ := tc.state.Text(now); text != tc.text {
			t.Errorf("%+v is %q, want %q", tc.state, text, tc.text)
		}
		if title := tc.state.Title(); title != tc.title {
			t.Errorf("%+v has the title %q, want %q", tc.state, title, tc.title)
		}
	}
}

// The line is never wider than the screen, and the state is always in it.
func TestLineFits(t *testing.T) {
	f := Facts{
		Settings: p.Settings{Model: "m", Effort: "high", ContextWindow: 1000, Sandbox: p.SandboxPolicy{Mode: p.SandboxReadOnly}, Approval: p.ApprovalNever},
		Place:    "~/work (main)", Context: 250, Usage: p.Usage{Total: 1500}, Background: 2,
		Cost: func(p.Settings, p.Usage) (float64, bool) { return 1.5, true },
	}
	noColour := theme.New(theme.Options{})
	for width := 1; width < 140; width++ {
		line := State{Transcript: &transcript.Transcript{}}.Line(time.Time{}, f, width, noColour)
		if safetext.Width(line) > width || width > 12 && !strings.HasPrefix(line, "ready · /help") {
			t.Fatalf("in %d columns: %q", width, line)
		}
		if width == 139 && !strings.HasSuffix(line, "m high · ~/work (main) · 75 % context left · 1.5 k tokens $1.50 · read-only · never asks · 2 in background") {
			t.Errorf("%q", line)
		}
	}
	busy := State{Transcript: &transcript.Transcript{Active: true}, Busy: true}
	f.Context = 1200
	if line := busy.Line(time.Time{}, f, 139, noColour); !strings.Contains(line, "· 0 % context left") {
		t.Errorf("more than the window is %q", line)
	}
}
