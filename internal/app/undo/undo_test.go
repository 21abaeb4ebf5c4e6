package undo

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func trees(before, after string) *p.TurnDiff {
	return &p.TurnDiff{Trees: &p.TreeRange{Root: "/w", Before: before, After: after}}
}

// Undo in a turn that has not ended says what the turn does, and hints at a command that ends it.
func TestNotYet(t *testing.T) {
	for want, snap := range map[string]p.Snapshot{
		"turn 3 is running; undo works when it has ended: wait, or fermata interrupt ID interrupts it":                                    {},
		"turn 3 is waiting for approval; undo works when it has ended: fermata approve ID answers it, fermata interrupt ID interrupts it": {Waiting: true, PendingApprovals: []p.CallID{{Turn: 3}}},
		"turn 3 waits for a limit of the model service; undo works when it has ended: fermata interrupt ID interrupts it":                 {Waiting: true, Hold: &p.Held{}},
		"turn 3 is running; undo works when it has ended: wait, or fermata interrupt ID interrupts it ":                                   {Inputs: []p.ReturnedInput{{}}},
	} {
		snap.ID, snap.Turn, snap.Active = "ID", 3, true
		var e *hint.Error
		if err := notYet(snap); !errors.As(err, &e) || e.Err.Error()+": "+e.Hint != strings.TrimSpace(want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestChangeLog(t *testing.T) {
	call := func(turn p.TurnID) p.CallID { return p.CallID{Turn: turn, Response: 1} }
	patched := func(turn p.TurnID, applied bool) []p.Body {
		back := json.RawMessage(`{}`)
		return []p.Body{
			&p.PatchStarted{Patch: "p", Call: call(turn), Back: back},
			&p.ToolOutput{Call: call(turn), Patch: &p.PatchResult{Applied: applied}},
		}
	}
	for name, tt := range map[string]struct {
		events []p.Body
		turn   p.TurnID // asked for
		want   string   // the turn, its patches and its trees, or an error
	}{
		"nothing":             {nil, 0, "there is no turn whose changes to files can be undone"},
		"a patch":             {patched(1, true), 0, "turn 1, 1 patches"},
		"a patch that failed": {patched(1, false), 0, "there is no turn whose changes to files can be undone"},
		"a patch that was settled later": {
			[]p.Body{&p.PatchStarted{Patch: "p", Call: call(2)}, &p.ToolOutput{Call: call(2)}, &p.PatchSettled{Patch: "p", Applied: true}},
			0, "turn 2, 1 patches",
		},
		"the last is undone":  {append(patched(1, true), &p.Undone{Of: 1}), 0, "there is no turn whose changes to files can be undone"},
		"it is undone":        {append(patched(1, true), &p.Undone{Of: 1}), 1, "turn 1 was already undone"},
		"an undo is no patch": {[]p.Body{&p.PatchStarted{Patch: "u", Undoes: 1}, &p.PatchSettled{Patch: "u", Applied: true}}, 0, "there is no turn whose changes to files can be undone"},
		"no such turn":        {patched(1, true), 7, "there is no turn 7; the last one is 1"},
		"pictures grow":       {[]p.Body{trees("a", "b"), trees("a", "c")}, 0, "turn 1, 0 patches, a to c"},
		"pictures go on":      {[]p.Body{trees("a", "b"), trees("b", "c")}, 0, "turn 1, 0 patches, a to c"},
		"pictures with a gap": {[]p.Body{trees("a", "b"), trees("x", "c")}, 0, "turn 1 cannot be undone: files were changed while it waited for an approval"},
		"pictures fail":       {append(patched(1, true), trees("a", "b"), &p.TurnDiff{}), 0, "turn 1, 1 patches"},
		"nothing changed":     {[]p.Body{&p.CommandStarted{Call: call(1)}, trees("a", "a")}, 1, "turn 1 changed no files"},
		"commands only": {
			[]p.Body{&p.CommandStarted{Call: call(1)}},
			1,
			"turn 1 cannot be undone: only its commands may have changed files, and no snapshot was taken",
		},
	} {
		log := &changeLog{back: map[p.Seq]json.RawMessage{}}
		for i, b := range tt.events {
			log.apply(p.Event{Seq: p.Seq(i + 1), Turn: 1, Body: b})
		}
		got := describeChoice(log.choose(tt.turn))
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func describeChoice(c transcript.TurnChanges, err error) string {
	if err != nil {
		return err.Error()
	}
	text := "turn " + string(rune('0'+c.Turn)) + ", " + string(rune('0'+len(c.Patches))) + " patches"
	if c.Trees != nil {
		text += ", " + c.Trees.Before + " to " + c.Trees.After
	}
	return text
}

// Snapshots leave out the files that a process of the home uses as secrets.
func TestSnapshotsAreWithoutSecrets(t *testing.T) {
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if err := secrets.Home(home).Register(file); err != nil {
		t.Fatal(err)
	}
	if got := Snapshots(home).Secret(); !slices.Contains(got, file) {
		t.Errorf("left out are %q", got)
	}
}
