package history_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// A walk is a random conversation as package turn makes them, and its history.
type walk struct {
	t      *testing.T
	r      *rand.Rand
	state  turn.State
	log    []p.Event
	h      *history.History
	kept   []handed
	broken bool // since the last prompt something was taken out or put in
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{t: t, r: rand.New(rand.NewPCG(seed, 21)), h: &history.History{}}
	w.record(begin())
	return w
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	var b strings.Builder
	for _, e := range w.log[max(0, len(w.log)-30):] {
		body, _ := json.Marshal(e.Body)
		fmt.Fprintf(&b, "t%d %-20s %s\n", e.Turn, p.Kind(e.Body), body)
	}
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), b.String())
}

// record folds an event that belongs to no turn.
func (w *walk) record(b p.Body) { w.event(p.Event{Body: b}) }

// event folds an event, and asks for the prompt as the owner would.
func (w *walk) event(e p.Event) {
	e.Seq = p.Seq(len(w.log) + 1)
	w.log = append(w.log, e)
	w.state = w.state.Evolve(e)
	w.h.Apply(e)
	switch b := e.Body.(type) {
	case *p.ModelRequested:
		w.prompt()
	case *p.Reverted, *p.Compacted:
		w.broken = true
	case *p.ToolOutput:
		w.broken = w.broken || b.Repaired
	case *p.TurnEnded:
		w.checkpoint()
	}
}

// prompt checks what the model would be sent now.
func (w *walk) prompt() {
	items := w.h.Items()
	if err := valid(items, inOrder); err != nil {
		w.fail("%v\n%s", err, strings.Join(lines(items), "\n"))
	}
	if got := w.h.Missing(); len(got) > 0 {
		w.fail("missing: %v", got)
	}
	if n := len(w.kept); n > 0 && !w.broken {
		last := w.kept[n-1].items
		if len(items) < len(last) || !slices.Equal(last, items[:len(last)]) {
			w.fail("the prompt does not begin with the last one:\n%s\nis\n%s",
				strings.Join(lines(last), "\n"), strings.Join(lines(items), "\n"))
		}
	}
	w.broken = false
	w.kept = append(w.kept, handed{items, lines(items)})
	w.complete(items)
	w.toldLost(items)
}

// toldLost checks that the model is told, once and at the start of the next
// turn, which background commands have ended; and after a compaction, which run.
func (w *walk) toldLost(items []*p.PromptItem) {
	var waiting, want, got []string
	running := map[p.BackgroundID]bool{}
	for _, e := range w.log {
		switch b := e.Body.(type) {
		case *p.BackgroundEnded:
			if running[b.ID] {
				waiting = append(waiting, fmt.Sprintf("  - session %d: serve %d", b.ID, b.ID))
			}
			delete(running, b.ID)
		case *p.BackgroundStarted:
			running[b.ID] = true
		case *p.TurnStarted:
			want, waiting = append(want, waiting...), nil
		case *p.Compacted:
			want = nil
			for _, id := range slices.Sorted(maps.Keys(running)) {
				want = append(want, fmt.Sprintf("  - session %d: serve %d", id, id))
			}
		}
	}
	for _, it := range items {
		for line := range strings.SplitSeq(p.PlainText(it.Content), "\n") {
			if strings.HasPrefix(line, "  - session") {
				line, _, _ = strings.Cut(line, " (")
				got = append(got, line)
			}
		}
	}
	if !slices.Equal(want, got) {
		w.fail("lost and told differ (-lost +told):\n%s", cmp.Diff(want, got))
	}
}

// complete checks that nothing that was said is left out: each message of the
// user and each call, once and in order, since the last compaction.
func (w *walk) complete(items []*p.PromptItem) {
	var want, got []string
	typed := ""
	for _, e := range w.log {
		switch b := e.Body.(type) {
		case *p.UserMessage:
			if text := p.PlainText(b.Content); strings.HasPrefix(text, "!") {
				typed = "u$ " + text[1:] // told with its output
			} else {
				want = append(want, fmt.Sprint(e.Turn, " ", text))
			}
		case *p.ToolCall:
			if b.Call.Response != 0 {
				want = append(want, fmt.Sprint(e.Turn, " ", b.Call))
			}
		case *p.ToolOutput:
			if b.Call.Response == 0 {
				want, typed = append(want, fmt.Sprint(e.Turn, " ", typed)), ""
			}
		case *p.TurnEnded: // a crash cut its record
			if typed != "" {
				want, typed = append(want, fmt.Sprint(e.Turn, " ", typed)), ""
			}
		case *p.Compacted: // only what is still to be answered is kept
			want = slices.DeleteFunc(want, func(s string) bool { return !strings.HasPrefix(s, fmt.Sprint(e.Turn, " u")) })
		case *p.Reverted:
			want = slices.DeleteFunc(want, func(s string) bool {
				var turn p.TurnID
				_, _ = fmt.Sscan(s, &turn)
				return turn >= b.Before
			})
		}
	}
	for i := range want {
		_, want[i], _ = strings.Cut(want[i], " ")
	}
	for _, it := range items {
		switch {
		case it.Kind == p.PromptCall:
			got = append(got, it.Call.String())
		case it.Kind != p.PromptUser || strings.HasPrefix(it.Content[0].Text, "<"):
		case strings.HasPrefix(it.Content[0].Text, "I ran"):
			got = append(got, "u"+strings.Split(it.Content[0].Text, "\n")[1])
		default:
			got = append(got, p.PlainText(it.Content))
		}
	}
	if !slices.Equal(want, got) {
		w.fail("said and sent differ (-said +sent):\n%s", cmp.Diff(want, got))
	}
}

// checkpoint sometimes goes on from what was saved.
func (w *walk) checkpoint() {
	if w.r.IntN(4) > 0 || len(w.state.Background) > 0 {
		return
	}
	before := w.h.Items()
	w.h = restore(w.t, save(w.t, w.h))
	if w.r.IntN(2) == 0 {
		if want, got := views(before), views(w.h.Items()); !reflect.DeepEqual(want, got) {
			w.fail("restored (-want +got):\n%s", cmp.Diff(want, got))
		}
	}
	w.broken = true // the same, but made anew
}

// happen lets package turn decide.
func (w *walk) happen(in turn.Input) {
	env := turn.Env{
		Retries: func() turn.Retries { return turn.Retries{Request: 2, Stream: 2} }, Room: turn.Room{Size: func(...[]p.Content) int64 { return 100 }, Window: int64(w.r.IntN(10)+1) * 100, Grown: true, LocalSummary: func() string { return "local" }}, Wait: func(int, *p.Error) time.Duration { return 0 },
		Lane: func(c turn.Call) turn.Lane {
			if c.Name == "look" {
				return turn.Beside
			}
			return turn.Alone
		}, MaxParallel: 3,
	}
	if done, ok := in.(turn.ModelDone); ok && done.Error != nil && done.Error.Call != nil {
		if call, answered, ok := w.h.Find(done.Error.Call.WireID); ok {
			done.Refused = &turn.Refused{Call: call, Answered: answered}
		}
		in = done
	}
	events, err := w.state.Decide(env, in)
	if err != nil {
		return // refused: nothing happens
	}
	for _, e := range events {
		w.event(e)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (w *walk) step() {
	text := fmt.Sprint("u", len(w.log))
	switch k := w.r.IntN(40); {
	case !w.state.Active && len(w.state.Pending) > 0:
		w.happen(turn.Next{})
	case !w.state.Active:
		w.idle(k, text)
	case k == 0:
		w.crash()
	case k == 39:
		w.beside()
	case k < 3:
		w.happen(turn.Stop{})
	case k < 6:
		w.happen(turn.User{Content: p.Text(text), WhenBusy: pick(w.r, "", p.Steer, p.Queue, p.Replace)})
	case k < 10:
		w.happen(turn.ModelDone{Response: w.state.Response, Error: w.fault(), Open: w.partial()})
	case k < 22:
		w.happen(turn.ModelItem{Response: w.state.Response, Index: w.r.IntN(9), Body: w.item()})
	default:
		w.worker(k)
	}
}

func (w *walk) idle(k int, text string) {
	switch {
	case k < 3:
		w.record(&p.Configured{Settings: p.Settings{Cwd: fmt.Sprint("/", w.r.IntN(3))}})
	case k < 5 && w.state.Turn > w.h.Compacted():
		w.record(&p.Reverted{Before: w.h.Compacted() + 1 + p.TurnID(w.r.IntN(int(w.state.Turn-w.h.Compacted())))})
	case k < 6:
		w.happen(turn.Compact{})
	case k < 10:
		w.happen(turn.Shell{Command: text})
	case k < 15:
		w.beside()
	default:
		w.happen(turn.User{Content: p.Text(text)})
	}
}

// beside lets something happen to background commands.
func (w *walk) beside() {
	if calls := w.state.OpenCalls(); len(calls) > 0 {
		name := fmt.Sprint(w.state.LastBackground + 1)
		w.happen(turn.Keep{Started: p.BackgroundStarted{Call: calls[0], Command: []string{"serve", name}}})
	}
	for _, b := range w.state.Background {
		if w.r.IntN(3) == 0 {
			w.happen(turn.BackgroundDone{ID: b.ID, Stopped: w.r.IntN(2) == 0})
		}
	}
}

func (w *walk) worker(k int) {
	calls := w.state.OpenCalls()
	switch {
	case k < 25:
		w.happen(turn.RetryDue{})
	case len(w.state.Background) > 0 && (k == 25 || w.state.Stopping()):
		w.happen(turn.BackgroundDone{ID: pick(w.r, w.state.Background...).ID, Stopped: true})
	case len(calls) == 0:
	case k < 28:
		w.happen(turn.ToolAsked{Request: p.ApprovalRequested{Call: pick(w.r, calls...)}})
	case k < 32:
		w.happen(turn.Approval{Call: pick(w.r, calls...), Decision: pick(w.r, p.Approved, p.Denied, p.Abort)})
	default:
		w.happen(turn.ToolDone{Output: p.ToolOutput{Call: pick(w.r, calls...), Output: "out", Aborted: w.state.Stopping()}})
	}
}

func (w *walk) item() p.Body {
	switch w.r.IntN(5) {
	case 0:
		return &p.Reasoning{Text: "t"}
	case 1:
		return &p.AssistantMessage{Text: "m"}
	}
	return &p.ToolCall{WireID: pick(w.r, "a", "b"), Kind: pick(w.r, p.CallFunction, p.CallCustom), Name: pick(w.r, "look", "work")}
}

func (w *walk) fault() *p.Error {
	switch w.r.IntN(8) {
	case 0, 1:
		return &p.Error{Kind: p.ErrorConnection, Retry: true}
	case 2:
		return &p.Error{Kind: p.ErrorContextLength}
	case 3:
		return &p.Error{Kind: p.ErrorHistory, Call: &p.CallFault{WireID: pick(w.r, "a", "b", "c"), Fault: p.CallWithoutOutput}}
	}
	return nil
}

func (w *walk) partial() []turn.Partial {
	if w.r.IntN(2) == 0 {
		return nil
	}
	item := p.ItemID{Turn: w.state.Turn, Response: w.state.Response, Index: 9}
	return []turn.Partial{{Item: item, Kind: pick(w.r, p.DeltaMessage, p.DeltaReasoning), Text: "half"}}
}

// crash loses the end of the record. What was handed out before is no concern
// of the program that opens the conversation again.
func (w *walk) crash() {
	log := w.log[:max(1, len(w.log)-w.r.IntN(5))]
	w.check()
	w.state, w.log, w.h, w.kept, w.broken = turn.State{}, nil, &history.History{}, nil, true
	for _, e := range log {
		w.log = append(w.log, e)
		w.state = w.state.Evolve(e)
		w.h.Apply(e)
	}
	w.happen(turn.Lost{Crash: true, Open: w.partial()})
}

// check compares everything that was handed out with what it was, and the
// history with one that is made of the record as it is written, and asked for
// its prompt at any time.
func (w *walk) check() {
	for _, k := range w.kept {
		if !slices.Equal(k.was, lines(k.items)) {
			w.fail("a prompt that was handed out changed:\n%s", cmp.Diff(k.was, lines(k.items)))
		}
	}
	var again history.History
	for _, e := range w.log {
		data, err := json.Marshal(e)
		if err != nil {
			w.fail("%v", err)
		}
		var back p.Event
		if err := json.Unmarshal(data, &back); err != nil {
			w.fail("%v", err)
		}
		again.Apply(back)
		if w.r.IntN(8) == 0 {
			again.Items()
			again.Find("a")
		}
	}
	if read, live := views(again.Items()), views(w.h.Items()); !reflect.DeepEqual(read, live) {
		w.fail("read back and live differ (-read +live):\n%s", cmp.Diff(read, live))
	}
}

// Whatever turns do, the prompt is valid, says everything that was said, and
// begins with the one before it.
func TestRandomConversations(t *testing.T) {
	prompts := 0
	seeds := longtest.Default(600, 200)
	for seed := range uint64(seeds) {
		w := newWalk(t, seed)
		for range 80 {
			w.step()
		}
		w.check()
		prompts += len(w.kept)
	}
	if prompts < seeds*5/2 {
		t.Errorf("only %d prompts were looked at", prompts)
	}
}
