package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

// talk runs turns that say what they are asked.
func talk(e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch, texts ...string) {
	for _, text := range texts {
		e.Say(id, text)
		e.Request().Answer("re " + text)
		w.Expect("turn_ended completed")
	}
}

func TestForkCopiesWholeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		talk(e, id, w, "one", "two")
		firstEnd := p.Seq(7)
		fork, err := e.Fork(t.Context(), id, firstEnd+2) // in the middle of the second turn
		if err != nil {
			t.Fatal(err)
		}
		e.Say(fork, "three")
		want := []string{"user one", "assistant re one", "user three"}
		r := e.Request()
		if d := cmp.Diff(want, r.Inputs()[1:]); d != "" {
			t.Errorf("prompt of the fork (-want +got):\n%s", d)
		}
		r.Answer("3")
		e.Say(id, "four")
		want = []string{"user one", "assistant re one", "user two", "assistant re two", "user four"}
		if d := cmp.Diff(want, e.Request().Inputs()[1:]); d != "" {
			t.Errorf("prompt of the original (-want +got):\n%s", d)
		}
		fw := e.Watch(fork, 0)
		fw.Expect("conversation_started")
		begin := fw.Last().Body.(*p.ConversationStarted)
		if begin.ID != fork || begin.Fork == nil || begin.Fork.ID != id || begin.Fork.Seq != firstEnd {
			t.Errorf("fork begins %+v", begin)
		}
	})
}

func TestForkWhileATurnRuns(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		talk(e, id, w, "one")
		e.Say(id, "two")
		r := e.Request()
		fork, err := e.Fork(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := e.Resume(t.Context(), fork)
		if err != nil || snap.Active || snap.Turn != 1 {
			t.Errorf("fork %+v, %v", snap, err)
		}
		r.Answer("2")
		w.Expect("turn_ended completed")
	})
}

func TestRevert(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		talk(e, id, w, "one", "two", "three")
		e.Must(id, p.Revert{Before: 2})
		for _, bad := range []p.TurnID{0, 4, -1} {
			if _, err := e.Submit(t.Context(), id, p.Revert{Before: bad}); !errors.Is(err, engine.ErrRevert) {
				t.Errorf("revert before turn %d: %v", bad, err)
			}
		}
		e.Say(id, "four")
		r := e.Request()
		want := []string{"user one", "assistant re one", "user four"}
		if d := cmp.Diff(want, r.Inputs()[1:]); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		if _, err := e.Submit(t.Context(), id, p.Revert{Before: 1}); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("revert while a turn runs: %v", err)
		}
	})
}

func TestCompact(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		talk(e, id, w, "one", "two")
		e.Must(id, p.Compact{})
		r := e.Request()
		if len(r.Prompt.Tools) == 0 || !r.Prompt.NoCalls {
			t.Errorf("a compaction keeps the tools and lets none be called: %v", r.Prompt.Tools)
		}
		e.Say(id, "three", p.Steer) // cannot join: it waits its turn
		r.Answer("they counted")
		w.Expect("compacted", "turn_ended completed", "user_message three")
		want := []string{"user <environment_context>", "user one", "user two", "user <conversation_summary>", "user three"}
		if d := cmp.Diff(want, e.Request().Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
	})
}

// A conversation that is about to be too long is summarised, in the middle of a
// turn if need be, and the turn goes on.
func TestAutomaticCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id, err := e.Create(t.Context(), p.Settings{Cwd: "/w", ContextWindow: 1000})
		if err != nil {
			t.Fatal(err)
		}
		w := e.Watch(id, 1)
		e.Say(id, "one")
		r := e.Request()
		r.Usage = &p.Usage{Input: 950, Total: 950}
		r.Call("c", "work", "{}")
		r.End()
		e.Run().Finish("done")
		sum := e.Request()
		if len(sum.Prompt.Tools) == 0 || !sum.Prompt.NoCalls || !strings.HasPrefix(sum.Inputs()[len(sum.Inputs())-1], "user Summarise") {
			t.Errorf("asked for a summary with %q", sum.Inputs())
		}
		e.Say(id, "and two", p.Steer)
		sum.Answer("they counted")
		r = e.Request()
		want := []string{"user <environment_context>", "user one", "user <conversation_summary>", "user and two"}
		if d := cmp.Diff(want, r.Inputs()); d != "" {
			t.Errorf("prompt (-want +got):\n%s", d)
		}
		r.Answer("2")
		w.Expect("tool_output 1.1.0 done", "model_requested 2", "compacted", "user_message and two", "model_requested 3", "turn_ended completed")
	})
}

func TestCompactionWhenTheModelSaysItIsTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		tooLong := &p.Error{Kind: p.ErrorContextLength, Message: "too long"}
		e.Say(id, "one")
		e.Request().Fail(tooLong)
		e.Request().Answer("they talked")
		e.Request().Fail(tooLong) // it does not help, and nothing is left to leave out: no endless loop
		w.Expect("compacted", "stop_requested failed", "turn_ended failed")
	})
}

func TestCompactionIsInterrupted(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		e.Request().Fail(&p.Error{Kind: p.ErrorContextLength, Message: "too long"})
		e.Request() // for a summary
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
	})
}

func TestConfigureTakesEffectWithTheNextTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		r.Call("c", "work", "{}")
		r.End()
		cwd, name := "/elsewhere", "bigger"
		e.Must(id, p.Configure{Overrides: p.Overrides{Cwd: &cwd, Model: &name}})
		run := e.Run()
		if run.Call.Settings.Cwd != "/w" {
			t.Errorf("the running turn moved to %s", run.Call.Settings.Cwd)
		}
		run.Finish("ok")
		if r := e.Request(); r.Prompt.Model != "puppet" {
			t.Errorf("the running turn changed to %s", r.Prompt.Model)
		} else {
			r.Answer("1")
		}
		w.Expect("turn_ended completed")
		e.Say(id, "two")
		r = e.Request()
		if r.Prompt.Model != "bigger" {
			t.Errorf("model %s", r.Prompt.Model)
		}
		env := p.PlainText(r.Prompt.Items[len(r.Prompt.Items)-2].Content)
		if d := cmp.Diff("<environment_context>\n  <cwd>/elsewhere</cwd>\n</environment_context>", env); d != "" {
			t.Errorf("what the model is told (-want +got):\n%s", d)
		}
	})
}

func TestWaitingMessagesCanBeEditedAndDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "one")
		r := e.Request()
		two := e.Say(id, "two", p.Queue).Input
		three := e.Say(id, "three", p.Queue).Input
		e.Must(id, p.EditInput{Input: two, Content: p.Text("two, better")})
		e.Must(id, p.DeleteInput{Input: three})
		if _, err := e.Submit(t.Context(), id, p.DeleteInput{Input: three}); !errors.Is(err, engine.ErrNoInput) {
			t.Errorf("deleted twice: %v", err)
		}
		r.Answer("1")
		w.Expect("input_returned three", "turn_ended completed", "user_message two, better")
		e.Request().Answer("2")
		w.Expect("turn_ended completed")
		e.Idle()
	})
}

func TestListPagesNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		var ids []p.ConversationID
		for i := range 5 {
			id := e.Begin()
			ids = append(ids, id)
			talk(e, id, e.Watch(id, 0), fmt.Sprintf("topic %d\nmore", i))
			time.Sleep(time.Second)
		}
		e.Must(ids[1], p.Rename{Title: "the second"})
		if err := e.Archive(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		if err := e.Delete(t.Context(), ids[2]); err != nil {
			t.Fatal(err)
		}
		var titles []string
		for cursor := ""; ; {
			page, err := e.List(t.Context(), engine.ListOptions{Limit: 2, Cursor: cursor})
			if err != nil || len(page.Items) > 2 {
				t.Fatalf("page %+v, %v", page, err)
			}
			for _, s := range page.Items {
				titles = append(titles, s.Title)
				if s.Ended != p.Completed || s.Turns != 1 || s.Cwd != "/w" || s.LastLine == "" {
					t.Errorf("summary %+v", s)
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if d := cmp.Diff([]string{"the second", "topic 4", "topic 3"}, titles); d != "" {
			t.Errorf("titles (-want +got):\n%s", d)
		}
		page, err := e.List(t.Context(), engine.ListOptions{Archived: true})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != ids[0] {
			t.Errorf("archived %+v, %v", page, err)
		}
		if page, _ := e.List(t.Context(), engine.ListOptions{Cwd: "/elsewhere"}); len(page.Items) != 0 {
			t.Errorf("of another directory: %+v", page)
		}
		if _, err := e.List(t.Context(), engine.ListOptions{Cursor: "nonsense"}); err == nil {
			t.Error("a nonsense cursor was taken")
		}
	})
}

func TestArchiveStopsTheTurnFirst(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine, id p.ConversationID, w *enginetest.Watch) {
		e.Say(id, "go")
		r := e.Request()
		if err := e.Archive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.Stopped()
		w.Expect("turn_ended interrupted")
	})
}

func TestEphemeralLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id, err := e.Create(t.Context(), p.Settings{Ephemeral: true})
		if err != nil {
			t.Fatal(err)
		}
		talk(e, id, e.Watch(id, 0), "secret")
		if page, _ := e.List(t.Context(), engine.ListOptions{}); len(page.Items) != 0 {
			t.Errorf("listed: %+v", page.Items)
		}
	})
}

// A call whose output was lost with a damaged record gets one when the
// conversation is opened, and that is recorded.
func TestLostOutputIsRepairedAtOpen(t *testing.T) {
	home := t.TempDir()
	store := file.New(home, file.Options{Poll: true})
	e := enginetest.New(t, enginetest.Options{Store: store})
	id := e.Begin()
	w := e.Watch(id, 0)
	e.Say(id, "go")
	r := e.Request()
	r.Call("c", "work", "{}")
	r.End()
	e.Run().Finish("precious")
	e.Request().Answer("done")
	w.Expect("turn_ended completed")
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(home, "conversations/*/*/*/*.jsonl"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], bytes.Replace(text, []byte("precious"), []byte("garbled!"), 1), 0o600); err != nil {
		t.Fatal(err)
	}

	e = enginetest.New(t, enginetest.Options{Store: store})
	e.Say(id, "and now")
	want := []string{"user go", "call c", "output c aborted", "assistant done", "user and now"}
	if d := cmp.Diff(want, e.Request().Inputs()[1:]); d != "" {
		t.Errorf("prompt (-want +got):\n%s", d)
	}
	e.Watch(id, 0).Expect("damaged", "turn_ended completed", "tool_output 1.1.0 aborted")
}
