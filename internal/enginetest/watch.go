package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Watch is a client that follows a conversation.
type Watch struct {
	t      testing.TB
	events chan p.Event
	All    []p.Event // everything seen by Expect, ExpectExactly and Nothing so far
	ended  chan error
}

// Watch attaches a client after the cursor. Deltas are left out; see WatchAll.
func (e *Engine) Watch(id p.ConversationID, after p.Cursor) *Watch { return e.watch(id, after, false) }

// WatchAll is a Watch that shows deltas too.
func (e *Engine) WatchAll(id p.ConversationID, after p.Cursor) *Watch {
	return e.watch(id, after, true)
}

func (e *Engine) watch(id p.ConversationID, after p.Cursor, deltas bool) *Watch {
	w := &Watch{t: e.t, events: make(chan p.Event, 10000), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(e.t.Context())
	e.t.Cleanup(cancel)
	go func() { // ends with the test
		for ev, err := range e.Subscribe(ctx, id, after) {
			if err != nil {
				w.ended <- err
				return
			}
			if _, ok := ev.Body.(*p.Delta); ok && !deltas {
				continue
			}
			w.events <- ev
		}
	}()
	return w
}

func (w *Watch) next() (string, bool) {
	select {
	case e := <-w.events:
		w.All = append(w.All, e)
		return Line(e), true
	case <-time.After(time.Hour):
		return "", false
	}
}

// Expect waits until the given events have come, in this order; others may
// stand between them.
func (w *Watch) Expect(lines ...string) {
	w.t.Helper()
	var seen []string
	for _, want := range lines {
		for {
			got, ok := w.next()
			if !ok {
				w.t.Fatalf("no %q; seen since the last:\n%s", want, strings.Join(seen, "\n"))
			}
			seen = append(seen, got)
			if got == want {
				break
			}
		}
	}
}

// ExpectExactly waits for as many events as given and compares them.
func (w *Watch) ExpectExactly(lines ...string) {
	w.t.Helper()
	var got []string
	for range lines {
		line, ok := w.next()
		if !ok {
			break
		}
		got = append(got, line)
	}
	if d := cmp.Diff(lines, got); d != "" {
		w.t.Fatalf("events (-want +got):\n%s", d)
	}
}

// ExpectInAnyOrder is ExpectExactly for events of which either may come first.
func (w *Watch) ExpectInAnyOrder(lines ...string) {
	w.t.Helper()
	var got []string
	for range lines {
		line, _ := w.next()
		got = append(got, line)
	}
	slices.Sort(got)
	if d := cmp.Diff(slices.Sorted(slices.Values(lines)), got); d != "" {
		w.t.Fatalf("events (-want +got):\n%s", d)
	}
}

// Nothing fails the test if another event has come, or comes without anybody
// doing something.
func (w *Watch) Nothing() {
	w.t.Helper()
	synctest.Wait()
	select {
	case e := <-w.events:
		w.t.Fatalf("unexpected event %q", Line(e))
	default:
	}
}

// Ended waits until the client gets an error instead of an event, and returns it.
func (w *Watch) Ended() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(time.Hour):
		w.t.Fatal("the client follows on")
		return nil
	}
}

// Last returns the last event that was seen.
func (w *Watch) Last() p.Event { return w.All[len(w.All)-1] }

// Line is an event in one short line, for comparing.
func Line(e p.Event) string {
	kind := p.Kind(e.Body)
	var parts []string
	add := func(s ...any) { parts = append(parts, fmt.Sprint(s...)) }
	switch b := e.Body.(type) {
	case *p.UserMessage:
		add(p.PlainText(b.Content))
	case *p.InputAccepted:
		add(b.Mode)
		add(p.PlainText(b.Content))
	case *p.InputReturned:
		for _, in := range b.Inputs {
			add(p.PlainText(in.Content))
		}
	case *p.ReturnedResolved:
		add(b.As)
	case *p.AssistantMessage:
		add(b.Text, partial(b.Partial))
	case *p.Reasoning:
		add(b.Text, partial(b.Partial))
	case *p.ToolCall:
		add(b.Call)
		add(b.Name)
	case *p.CallStarted:
		add(b.Call, prefix(" ", string(b.Grant)))
	case *p.ApprovalRequested:
		add(b.Call)
	case *p.ApprovalResolved:
		add(b.Call)
		add(b.Decision)
	case *p.ToolOutput:
		add(b.Call)
		add(firstWords(b.Output))
	case *p.BackgroundStarted:
		add(b.ID)
		add(b.Call)
	case *p.BackgroundEnded:
		add(b.ID)
		add(b.Reason)
	case *p.ModelRequested:
		add(b.Response)
	case *p.ModelEnded:
		if b.Error != nil {
			add(b.Error.Message)
		}
	case *p.ModelRetry:
		add(b.Attempt, "/", b.Max)
	case *p.StopRequested:
		add(b.Reason)
	case *p.TurnEnded:
		add(b.Reason)
	case *p.Delta:
		add(b.Item)
		add(b.Offset)
		add(b.Text)
	case *p.Notice:
		add(b.Text)
	}
	line := strings.TrimSpace(kind + " " + strings.Join(parts, " "))
	if e.Unsaved {
		line += " (unsaved)"
	}
	return line
}

// PromptLine is a prompt item in one short line.
func PromptLine(it *p.PromptItem) string {
	switch it.Kind {
	case p.PromptUser:
		return "user " + firstWords(p.PlainText(it.Content))
	case p.PromptCall:
		return "call " + it.WireID
	case p.PromptOutput:
		return "output " + it.WireID + " " + firstWords(it.Text)
	}
	return string(it.Kind) + " " + firstWords(it.Text)
}

func partial(yes bool) string {
	if yes {
		return " (cut)"
	}
	return ""
}

func prefix(pre, s string) string {
	if s == "" {
		return ""
	}
	return pre + s
}

// firstWords cuts texts that hold times and counts down to how they begin.
func firstWords(s string) string {
	for _, stop := range []string{" after", ":", "\n"} {
		if i := strings.Index(s, stop); i > 0 {
			s = s[:i]
		}
	}
	return s
}

// Kinds returns the kinds of the events, in order.
func Kinds(events []p.Event) []string {
	var out []string
	for e := range slices.Values(events) {
		out = append(out, p.Kind(e.Body))
	}
	return out
}
