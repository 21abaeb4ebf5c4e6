// Package wirecheck judges a history as the model services do: every call has
// exactly one output, of its own kind, after it and before anything that is not
// part of the same response, and every reasoning item is followed by what it led to.
//
// [Judge] takes the body of a request, [Check] a history in the common form, and
// [Prompt] the items of a prompt. A [Fault] says what is wrong, and [Fault.Body] is how the
// service of a wire would have said it.
package wirecheck

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/fermata-agent/fermata/protocol"
)

// A Wire is a way to talk to a model service.
type Wire string

// The wires.
const (
	Responses Wire = "responses"
	Chat      Wire = "chat"
	Anthropic Wire = "anthropic"
)

// Aborted is the text of the one output that may stand without its call: the
// answer to a call that only the service remembers.
const Aborted = "aborted"

// A Kind says what an Item is, as far as pairing goes.
type Kind string

// The kinds of item.
const (
	User      Kind = "user" // also system and developer messages
	Assistant Kind = "assistant"
	Reasoning Kind = "reasoning"
	Call      Kind = "call"
	Output    Kind = "output"
)

// An Item is one entry of a history.
type Item struct {
	Kind Kind
	Call protocol.CallKind // call, output
	ID   string            // call, output: the call's id; reasoning: its own, if it has one
	Name string            // call
	Text string            // what it says; a call's arguments
	At   int               // which message of the request it stands in
	Part int               // which part of that message
}

// A FaultKind is a way in which a history is invalid.
type FaultKind string

// The faults.
const (
	Missing   FaultKind = "missing"    // a call without an output
	Late      FaultKind = "late"       // its output comes after something else
	Orphaned  FaultKind = "orphaned"   // an output without a call
	Early     FaultKind = "early"      // an output before its call
	Twice     FaultKind = "twice"      // a second output for a call
	WrongKind FaultKind = "wrong_kind" // an output of another kind than its call
	Alone     FaultKind = "alone"      // reasoning that led to nothing
	Repeated  FaultKind = "repeated"   // a call with the id of another, where the wire forbids that
	BadID     FaultKind = "bad_id"     // a call with an id that the wire does not take
)

// A Fault is the first thing that is wrong with a history.
type Fault struct {
	Kind  FaultKind
	Index int  // of Item in the history; -1 for a call that only the service remembers
	Item  Item // the call, output or reasoning at fault
}

func (f *Fault) Error() string {
	return fmt.Sprintf("invalid history: %s %s %q at %d", f.Kind, f.Item.Kind, f.Item.ID, f.Index)
}

// CheckWire is Check with the rules that only one wire has.
func CheckWire(w Wire, items []Item, remembered ...string) *Fault {
	if w != Anthropic {
		return Check(items, remembered...)
	}
	seen := map[string]bool{}
	for i, it := range items {
		if it.Kind != Call {
			continue
		}
		if !anthropicID().MatchString(it.ID) {
			return &Fault{Kind: BadID, Index: i, Item: it}
		}
		if seen[it.ID] {
			return &Fault{Kind: Repeated, Index: i, Item: it}
		}
		seen[it.ID] = true
	}
	return Check(items, remembered...)
}

var anthropicID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) })

// Check returns the first fault of a history, or nil. An output with the text
// [Aborted] needs no call if its id is remembered, and what is remembered must
// be answered.
func Check(items []Item, remembered ...string) *Fault {
	c := checker{items: items, remembered: remembered, reasoning: -1, answered: map[string]bool{}}
	for i, it := range items {
		if f := c.take(i, it); f != nil {
			return f
		}
	}
	if f := c.closeResponse(); f != nil {
		return f
	}
	for _, id := range remembered {
		if !c.answered[id] {
			return &Fault{Kind: Missing, Index: -1, Item: Item{Kind: Call, Call: protocol.CallFunction, ID: id}}
		}
	}
	return nil
}

type checker struct {
	items      []Item
	remembered []string
	open       []int           // calls of the response at hand that have no output yet
	outputs    bool            // the outputs of that response have begun
	reasoning  int             // reasoning that has nothing after it yet, or -1
	answered   map[string]bool // ids that had an output
}

func (c *checker) take(i int, it Item) *Fault {
	switch it.Kind {
	case Output:
		return c.output(i, it)
	case Call, Reasoning:
		// Behind an output a new response begins.
		if c.outputs {
			if f := c.closeResponse(); f != nil {
				return f
			}
		}
		if it.Kind == Reasoning {
			c.reasoning = i
			return nil
		}
		c.reasoning = -1
		c.open = append(c.open, i)
		return nil
	case Assistant:
		c.reasoning = -1
	}
	return c.closeResponse()
}

func (c *checker) output(i int, it Item) *Fault {
	if c.reasoning >= 0 {
		return c.fault(Alone, c.reasoning)
	}

	c.outputs = true
	// Ids repeat: the nearest call that has no output is the one that is meant.
	for n := len(c.open) - 1; n >= 0; n-- {
		call := c.items[c.open[n]]
		if call.ID != it.ID {
			continue
		}
		if !fits(call.Call, it.Call) {
			return c.fault(WrongKind, i)
		}
		c.open = slices.Delete(c.open, n, n+1)
		c.answered[it.ID] = true
		return nil
	}

	if c.answered[it.ID] {
		return c.fault(Twice, i)
	}
	if it.Text == Aborted && slices.Contains(c.remembered, it.ID) {
		c.answered[it.ID] = true
		return nil
	}
	if c.has(Call, it.ID, i+1) {
		return c.fault(Early, i)
	}
	return c.fault(Orphaned, i)
}

// closeResponse ends the response at hand: nothing in it may be open.
func (c *checker) closeResponse() *Fault {
	if len(c.open) > 0 {
		i := c.open[0]
		if c.has(Output, c.items[i].ID, i+1) {
			return c.fault(Late, i)
		}
		return c.fault(Missing, i)
	}
	if c.reasoning >= 0 {
		return c.fault(Alone, c.reasoning)
	}
	c.outputs = false
	return nil
}

func (c *checker) has(kind Kind, id string, from int) bool {
	return slices.ContainsFunc(c.items[from:], func(it Item) bool { return it.Kind == kind && it.ID == id })
}

func (c *checker) fault(kind FaultKind, i int) *Fault {
	return &Fault{Kind: kind, Index: i, Item: c.items[i]}
}

// fits reports whether an output answers a call of the given kind. A local shell
// call is answered like a function.
func fits(call, output protocol.CallKind) bool {
	if call == protocol.CallLocalShell && output == protocol.CallFunction {
		return true
	}
	return call == output
}

// Prompt is the common form of a prompt.
func Prompt(items []*protocol.PromptItem) []Item {
	kinds := map[protocol.PromptKind]Kind{
		protocol.PromptUser: User, protocol.PromptAssistant: Assistant, protocol.PromptReasoning: Reasoning,
		protocol.PromptCall: Call, protocol.PromptOutput: Output,
	}
	out := make([]Item, len(items))
	for i, p := range items {
		out[i] = Item{Kind: kinds[p.Kind], Call: p.CallKind, ID: p.WireID, Name: p.Name, Text: p.Text, At: i}
		switch p.Kind {
		case protocol.PromptUser:
			out[i].Text = protocol.PlainText(p.Content)
		case protocol.PromptCall:
			out[i].Text = p.Arguments
		}
	}
	return out
}
