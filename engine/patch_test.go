package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A settler plays what settles patches, and remembers what it was given.
type settler struct {
	given   []string
	applied bool
	note    string
	err     error
}

func (s *settler) options() enginetest.Options {
	return enginetest.Options{Config: func(c *engine.Config) {
		c.Recovery.Settle = func(rec json.RawMessage, committed bool) (bool, string, error) {
			word := string(rec)
			if committed {
				word += " committed"
			}
			s.given = append(s.given, word)
			return s.applied, s.note, s.err
		}
	}}
}

// beginPatch starts a call that has recorded its patch.
func beginPatch(t *testing.T, e *enginetest.Engine, id p.ConversationID, committed bool) *enginetest.Run {
	t.Helper()
	e.Say(id, "go")
	r := e.Request()
	r.Call("c", "work", "{}")
	r.End()
	run := e.Run()
	bodies := []p.Body{&p.PatchStarted{Patch: "p1", Call: run.Call.ID, Changes: json.RawMessage(`{"/w/a":"delete"}`), Record: json.RawMessage(`"rec"`), Back: json.RawMessage(`"back"`)}}
	if committed {
		bodies = append(bodies, &p.PatchCommitted{Patch: "p1", Call: run.Call.ID})
	}
	for _, b := range bodies {
		if err := run.Call.Host.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// outputs returns the output of the only call, and how many PatchSettled follow.
func outputs(t *testing.T, e *enginetest.Engine, id p.ConversationID) (out *p.ToolOutput, settled []*p.PatchSettled) {
	t.Helper()
	for ev, err := range e.Read(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case *p.ToolOutput:
			out = b
		case *p.PatchSettled:
			settled = append(settled, b)
		}
	}
	if out == nil {
		t.Fatal("the call has no output")
	}
	return out, settled
}

func TestKillInAPatch(t *testing.T) {
	for name, tt := range map[string]struct {
		committed bool
		s         settler
		given     string
		want      string
	}{
		"before the commit": {false, settler{}, `"rec"`, "Nothing of the patch was applied."},
		"after the commit":  {true, settler{applied: true, note: "left alone: x"}, `"rec" committed`, "The patch was applied, all of it.\nleft alone: x"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
				tt := tt // each engine has its own
				beginPatch(t, e, id, tt.committed)
				e = kill(t, e, id, tt.s.options())
				snap, err := e.Resume(t.Context(), id)
				if err != nil || snap.Ended != p.Crashed || !strings.Contains(strings.Join(snap.Recovered, "\n"), "the patch of call 1.1.0 was interrupted") {
					t.Fatalf("after the kill: %+v, %v", snap, err)
				}
				if got := strings.Join(tt.s.given, ", "); got != tt.given {
					t.Errorf("settled %s, want %s", got, tt.given)
				}
				out, _ := outputs(t, e, id)
				if !strings.HasSuffix(out.Output, tt.want) || out.Patch == nil || out.Patch.Applied != tt.committed {
					t.Errorf("output %q, patch %+v", out.Output, out.Patch)
				}
				e = kill(t, e, id, tt.s.options())
				if _, err := e.Resume(t.Context(), id); err != nil || len(tt.s.given) != 1 {
					t.Errorf("opened again: %v, settled %q", err, tt.s.given)
				}
			})
		})
	}
}

// A call is told what the turn has patched, also by a process before this one.
func TestCallKnowsThePatchesOfItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		run := beginPatch(t, e, id, true)
		if len(run.Call.Patches) != 0 {
			t.Errorf("at first: %s", run.Call.Patches)
		}
		run.Return(p.ToolOutput{Output: "ok", Patch: &p.PatchResult{Applied: true}})
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Question(p.ApprovalRequested{Kind: p.ApprovePatch, Detail: json.RawMessage(`{"/w/a":"delete"}`)})
		e.Idle()
		e = kill(t, e, id, enginetest.Options{})
		snap, err := e.Resume(t.Context(), id)
		if err != nil || !snap.Waiting {
			t.Fatalf("after the kill: %+v, %v", snap, err)
		}
		e.Must(id, p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved})
		run = e.Run()
		if string(run.Call.Asked) != `{"/w/a":"delete"}` || run.Call.Grant != p.Approved {
			t.Errorf("it asked %s and was told %s", run.Call.Asked, run.Call.Grant)
		}
		if len(run.Call.Patches) != 1 || string(run.Call.Patches[0]) != `"back"` {
			t.Errorf("after the first patch: %s", run.Call.Patches)
		}
		run.Finish("ok")
		e.Request().Answer("done")
		e.Idle()
		e.Say(id, "more")
		r = e.Request()
		r.Call("c", "work", "{}")
		r.End()
		if run = e.Run(); len(run.Call.Patches) != 0 {
			t.Errorf("in the next turn: %s", run.Call.Patches)
		}
		run.Finish("ok")
		e.Request().Answer("done")
	})
}

// A patch that cannot be settled is tried again at each opening.
func TestPatchIsSettledLater(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		beginPatch(t, e, id, true)
		e = kill(t, e, id, enginetest.Options{})
		if _, err := e.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if out, _ := outputs(t, e, id); !strings.Contains(out.Output, "not known yet") {
			t.Errorf("with nothing to settle it: %+v", out)
		}
		broken := settler{err: errors.New("disk gone")}
		e = kill(t, e, id, broken.options())
		if snap, err := e.Resume(t.Context(), id); err != nil || !strings.Contains(strings.Join(snap.Recovered, "\n"), "disk gone") {
			t.Fatalf("with a broken disk: %+v, %v", snap, err)
		}
		s := settler{applied: true}
		for range 2 {
			e = kill(t, e, id, s.options())
			if _, err := e.Resume(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		_, settled := outputs(t, e, id)
		if len(s.given) != 1 || len(settled) != 1 || !settled[0].Applied {
			t.Errorf("settled %q, recorded %+v", s.given, settled)
		}
	})
}

// An undo whose steps take long is left to its client: the conversation is not released and settled between two steps.
// If it was settled nonetheless, the undo is not committed.
func TestSlowUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settler{}
		e := enginetest.New(t, s.options())
		id := e.Begin()
		e.Say(id, "go")
		e.Request().Answer("done")
		e.Idle()
		e.Must(id, p.Undo{Started: &p.PatchStarted{Patch: "u", Undoes: 1, Record: json.RawMessage(`"rec"`)}})
		time.Sleep(50 * time.Second)
		e.Must(id, p.Undo{Committed: &p.PatchCommitted{Patch: "u"}})
		time.Sleep(50 * time.Second)
		e.Must(id, p.Undo{Done: &p.Undone{Of: 1, Patch: "u"}})
		if len(s.given) != 0 {
			t.Errorf("settled %q while its client was at work", s.given)
		}

		e.Must(id, p.Undo{Started: &p.PatchStarted{Patch: "v", Undoes: 1, Record: json.RawMessage(`"rec"`)}})
		time.Sleep(2 * time.Minute)
		if _, err := e.Submit(t.Context(), id, p.Undo{Committed: &p.PatchCommitted{Patch: "v"}}); err == nil || !strings.Contains(err.Error(), "rolled back") {
			t.Errorf("commit of what was settled: %v", err)
		}
		if len(s.given) != 1 {
			t.Errorf("settled %q", s.given)
		}
	})
}

func TestKillInAnUndo(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, _ *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		if _, err := e.Submit(t.Context(), id, p.Undo{Started: &p.PatchStarted{}}); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("an undo while a turn runs: %v", err)
		}
		r.Answer("done")
		e.Idle()
		if _, err := e.Submit(t.Context(), id, p.Undo{}); err == nil {
			t.Error("an undo that says nothing is taken")
		}
		e.Must(id, p.Undo{Started: &p.PatchStarted{Patch: "u", Undoes: 1, Changes: json.RawMessage(`{"/w/a":"delete"}`), Record: json.RawMessage(`"rec"`)}})
		e.Must(id, p.Undo{Committed: &p.PatchCommitted{Patch: "u"}})
		s := settler{applied: true}
		e = kill(t, e, id, s.options())
		if _, err := e.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		e.Say(id, "more")
		var told string
		for _, it := range e.Request().Prompt.Items {
			told += p.PlainText(it.Content) + "\n"
		}
		if !strings.Contains(told, "took back what turn 1 changed") || !strings.Contains(told, "- /w/a") {
			t.Errorf("the model is told\n%s", told)
		}
	})
}
