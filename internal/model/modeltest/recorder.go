package modeltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// A Recorder is a sink that keeps what it was given, and notices when a client
// breaks the rules of a sink.
type Recorder struct {
	Items   []Recorded       // by index
	Broken  []string         // rules that were broken
	OnDelta func(all string) // called with all text so far, if set
	OnDone  func(n int)      // called with the number of finished items, if set

	text strings.Builder
	done int
}

// Recorded is what came for one item.
type Recorded struct {
	Kind   protocol.DeltaKind // of its deltas
	Deltas []string
	Done   protocol.Body // nil if it was not finished
}

// Text joins the deltas.
func (r Recorded) Text() string { return strings.Join(r.Deltas, "") }

// Delta implements model.Sink.
func (r *Recorder) Delta(index int, kind protocol.DeltaKind, text string) {
	it := r.at(index)
	if it == nil {
		return
	}
	if it.Done != nil {
		r.broken("delta %q of item %d after its end", text, index)
	}
	if it.Kind != "" && it.Kind != kind {
		r.broken("item %d is %s and %s", index, it.Kind, kind)
	}
	if text == "" {
		r.broken("empty delta of item %d", index)
	}
	it.Kind = kind
	it.Deltas = append(it.Deltas, text)
	r.text.WriteString(text)
	if r.OnDelta != nil {
		r.OnDelta(r.text.String())
	}
}

// Done implements model.Sink.
func (r *Recorder) Done(index int, item protocol.Body) {
	it := r.at(index)
	if it == nil {
		return
	}
	if it.Done != nil {
		r.broken("item %d is finished twice", index)
	}
	it.Done = item
	r.check(index, *it)
	r.done++
	if r.OnDone != nil {
		r.OnDone(r.done)
	}
}

// at is the item with the given index. A new one is the next.
func (r *Recorder) at(index int) *Recorded {
	// A call has no deltas, so one that began earlier may be finished later.
	for index >= len(r.Items) && index < len(r.Items)+16 {
		r.Items = append(r.Items, Recorded{})
	}
	if index < 0 || index >= len(r.Items) {
		r.broken("item %d after %d items", index, len(r.Items))
		return nil
	}
	return &r.Items[index]
}

// check compares a finished item with its deltas.
func (r *Recorder) check(index int, it Recorded) {
	switch b := it.Done.(type) {
	case *protocol.AssistantMessage:
		if len(it.Deltas) > 0 && (it.Kind != protocol.DeltaMessage || it.Text() != b.Text) {
			r.broken("message %d is %q, its deltas are %q", index, b.Text, it.Text())
		}
	case *protocol.Reasoning:
		if len(it.Deltas) > 0 && (it.Kind != protocol.DeltaReasoning || it.Text() != b.Text) {
			r.broken("reasoning %d is %q, its deltas are %q", index, b.Text, it.Text())
		}
	case *protocol.ToolCall:
		if len(it.Deltas) > 0 || b.WireID == "" || b.Name == "" || b.Kind == "" {
			r.broken("call %d is %+v with deltas %q", index, b, it.Text())
		}
	default:
		r.broken("item %d is a %T", index, it.Done)
	}
}

func (r *Recorder) broken(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

// Finished returns the finished items in order.
func (r *Recorder) Finished() []protocol.Body {
	var out []protocol.Body
	for _, it := range r.Items {
		if it.Done != nil {
			out = append(out, it.Done)
		}
	}
	return out
}

// Summary tells the finished items in short: text "hi", think "hm", call id name arguments.
func (r *Recorder) Summary() []string {
	var out []string
	for _, b := range r.Finished() {
		switch b := b.(type) {
		case *protocol.AssistantMessage:
			out = append(out, fmt.Sprintf("text %q", b.Text))
		case *protocol.Reasoning:
			out = append(out, fmt.Sprintf("think %q", b.Text))
		case *protocol.ToolCall:
			out = append(out, fmt.Sprintf("call %s %s %s", b.WireID, b.Name, b.Arguments))
		}
	}
	return out
}

// SaysNothing reports whether a summary has neither a message nor a call.
func SaysNothing(summary []string) bool {
	return !slices.ContainsFunc(summary, func(s string) bool { return !strings.HasPrefix(s, "think ") })
}

// IsEmpty reports whether err says that a response is empty.
func IsEmpty(err error) bool {
	var e *protocol.Error
	return errors.As(err, &e) && e.Retry && strings.Contains(e.Message, "empty")
}
