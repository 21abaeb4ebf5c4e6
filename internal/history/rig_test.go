package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/history"
	p "github.com/fermata-agent/fermata/protocol"
)

func id(turn, response, index int) p.ItemID {
	return p.ItemID{Turn: p.TurnID(turn), Response: response, Index: index}
}

// events gives bodies their turns as the owner of a conversation would.
func events(bodies ...p.Body) []p.Event {
	var out []p.Event
	var turn p.TurnID
	active := false
	for i, b := range bodies {
		if _, ok := b.(*p.TurnStarted); ok {
			turn++
			active = true
		}
		e := p.Event{Seq: p.Seq(i + 1), Body: b}
		if active {
			e.Turn = turn
		}
		out = append(out, e)
		if _, ok := b.(*p.TurnEnded); ok {
			active = false
		}
	}
	return out
}

// build makes the history of the events.
func build(bodies ...p.Body) *history.History {
	h := &history.History{}
	apply(h, bodies...)
	return h
}

func apply(h *history.History, bodies ...p.Body) {
	for _, e := range events(bodies...) {
		h.Apply(e)
	}
}

// lines writes a prompt, one item a line.
func lines(items []*p.PromptItem) []string {
	var out []string
	for _, it := range items {
		switch it.Kind {
		case p.PromptUser:
			text := p.PlainText(it.Content)
			if _, rest, ok := strings.Cut(text, "replaced by this summary.\n\n"); ok {
				gist, _, _ := strings.Cut(rest, "\n</conversation_summary>")
				out = append(out, summary+gist)
				continue
			}
			out = append(out, "user: "+text)
		case p.PromptAssistant, p.PromptReasoning:
			out = append(out, fmt.Sprintf("%s: %s", it.Kind, it.Text))
		case p.PromptCall:
			out = append(out, fmt.Sprintf("call %s %s: %s", it.Call, it.WireID, it.Name))
		case p.PromptOutput:
			out = append(out, fmt.Sprintf("output %s %s: %s", it.Call, it.WireID, it.Text))
		default:
			out = append(out, fmt.Sprintf("%+v", it))
		}
	}
	return out
}

// expect compares the prompt with the wanted lines.
func expect(t *testing.T, h *history.History, want ...string) {
	t.Helper()
	got := h.Items()
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
	if err := valid(got, inOrder); err != nil {
		t.Errorf("prompt is not valid: %v\n%s", err, strings.Join(lines(got), "\n"))
	}
}

// Whether outputs must come in the order of their calls.
const (
	inOrder = iota
	anyOrder
)

// valid judges a prompt as a strict provider would: each call has exactly one
// output, of its own kind, in the run of outputs directly after the run of
// calls that it is part of; reasoning is followed by what it led to.
func valid(items []*p.PromptItem, order int) error {
	for i := 0; i < len(items); {
		switch it := items[i]; it.Kind {
		case p.PromptOutput:
			return fmt.Errorf("item %d: output %s without its call", i, it.Call)
		case p.PromptReasoning:
			if i+1 == len(items) || items[i+1].Kind == p.PromptUser || items[i+1].Kind == p.PromptOutput {
				return fmt.Errorf("item %d: reasoning with nothing after it", i)
			}
			i++
		case p.PromptCall:
			n, err := validGroup(items[i:], order)
			if err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
			i += n
		default:
			i++
		}
	}
	return nil
}

// validGroup judges a run of calls and their outputs, and returns its length.
func validGroup(items []*p.PromptItem, order int) (int, error) {
	calls := map[p.CallID]*p.PromptItem{}
	var ids []p.CallID
	i := 0
	for ; i < len(items) && (items[i].Kind == p.PromptCall || items[i].Kind == p.PromptReasoning); i++ {
		if it := items[i]; it.Kind == p.PromptCall {
			if calls[it.Call] != nil {
				return 0, fmt.Errorf("call %s twice", it.Call)
			}
			calls[it.Call] = it
			ids = append(ids, it.Call)
		}
	}
	for ; len(calls) > 0; i++ {
		if i == len(items) || items[i].Kind != p.PromptOutput {
			return 0, fmt.Errorf("calls %v have no output", ids)
		}
		out, call := items[i], calls[items[i].Call]
		switch {
		case call == nil:
			return 0, fmt.Errorf("output %s has no call before it", out.Call)
		case call.WireID != out.WireID || call.CallKind != out.CallKind:
			return 0, fmt.Errorf("output %s is %s %s, its call %s %s", out.Call, out.CallKind, out.WireID, call.CallKind, call.WireID)
		case order == inOrder && ids[0] != out.Call:
			return 0, fmt.Errorf("output %s comes before that of %s", out.Call, ids[0])
		}
		delete(calls, out.Call)
		ids = ids[1:]
	}
	return i, nil
}

const workdir = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"

// env is the first line of the prompts in the tests.
const env = "user: " + workdir

func settings(change func(*p.Settings)) p.Settings {
	s := p.Settings{Cwd: "/w"}
	if change != nil {
		change(&s)
	}
	return s
}

// begin is the first event; opened are the first four.
func begin() p.Body { return &p.ConversationStarted{Settings: settings(nil)} }

func opened(more ...p.Body) []p.Body {
	return append([]p.Body{begin(), &p.TurnStarted{}, says(1, "go"), request(1)}, more...)
}

func says(input int, text string) p.Body {
	return &p.UserMessage{Input: p.InputID(input), Content: p.Text(text)}
}

func request(response int) p.Body { return &p.ModelRequested{Response: response} }

func over(response int) p.Body { return &p.ModelEnded{Response: response} }

func said(response, index int, text string) p.Body {
	return &p.AssistantMessage{Item: id(1, response, index), Text: text}
}

func half(response, index int, text string) p.Body {
	return &p.AssistantMessage{Item: id(1, response, index), Text: text, Partial: true}
}

func thought(response, index int, text string) p.Body {
	return &p.Reasoning{Item: id(1, response, index), Text: text}
}

func call(response, index int) p.Body { return callIn(1, response, index) }

func callIn(turn, response, index int) p.Body {
	return &p.ToolCall{
		Call: id(turn, response, index), WireID: fmt.Sprint("w", index), Kind: p.CallFunction,
		Name: "sh", Arguments: fmt.Sprintf(`{"n": %d}`, index),
	}
}

func output(response, index int, text string) p.Body { return outputIn(1, response, index, text) }

func outputIn(turn, response, index int, text string) p.Body {
	return &p.ToolOutput{Call: id(turn, response, index), Output: text}
}

func aborted(response, index int, text string) p.Body {
	return &p.ToolOutput{Call: id(1, response, index), Output: text, Aborted: true}
}

func end(reason p.EndReason) p.Body {
	return &p.TurnEnded{Reason: reason, Elapsed: 1500 * time.Millisecond}
}

// A view is a prompt item without what an adapter keeps in it.
type view struct {
	Kind      p.PromptKind
	Content   []p.Content
	Text      string
	Call      p.CallID
	WireID    string
	CallKind  p.CallKind
	Name      string
	Arguments string
	Raw       p.Raw
}

func views(items []*p.PromptItem) []view {
	out := make([]view, len(items))
	for i, it := range items {
		out[i] = view{it.Kind, it.Content, it.Text, it.Call, it.WireID, it.CallKind, it.Name, it.Arguments, it.Raw}
	}
	return out
}
