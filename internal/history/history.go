// Package history turns the events of a conversation into what the model is
// sent: the fold of [History.Apply] over the events, read with [History.Items].
//
// What it guarantees, whatever the events: each call is followed by exactly one
// output of its own kind, directly after the calls of the same response; an output
// without its call, a call without whole arguments and reasoning with nothing
// after it are not in it. Items are added at the end and never change, so that a
// provider can cache the prefix and an adapter each item's encoding; only a
// revert, a compaction or a repair touches earlier ones.
//
// It is pure: no I/O, no time, no goroutine.
package history

import (
	"slices"

	"github.com/fermata-agent/fermata/internal/prompt"
	p "github.com/fermata-agent/fermata/protocol"
)

// A History is what the model is sent. The zero value is empty. It is used by
// one goroutine; the slices it returns may be passed on.
type History struct {
	entries []*entry
	items   []*p.PromptItem // entries[i].item, in step; shared with callers, so only ever extended
	lead    []*entry        // what every history begins with: instructions and environment
	saved   []byte          // a checkpoint that has not been decoded yet

	settings        p.Settings
	nextSettings    *p.Settings // of the turns to come, not yet reported to the model
	compacted       p.TurnID
	size            int64             // bytes of the entries, see itemSize
	base            int64             // of them: what a compaction left
	window          int64             // tokens that the model takes, as far as is known
	shortened       bool              // an entry was shortened
	plan            []p.PlanStep      // the model's latest
	changed         []fileChange      // what patches did
	missing         []p.CallID        // calls whose response is over and that have no output
	known           map[p.CallID]bool // the calls among the entries
	group           group
	notes           turnNotes
	background      map[p.BackgroundID]string // the background commands that run, described
	endedBackground []string                  // those that were ended, not yet reported to the model
}

// An entry is a prompt item and where it came from.
type entry struct {
	turn     p.TurnID
	response int
	item     *p.PromptItem
	own      bool     // the user's own words
	id       p.ItemID // of those: their name
}

// A group is the latest model response while its calls are being answered.
type group struct {
	turn      p.TurnID
	response  int
	reasoning []*p.Reasoning // held until something follows it
	partial   *p.AssistantMessage
	before    int      // where in the entries the first call, with its reasoning, stands
	calls     []*entry // without an output in the history, in order
	outputs   map[p.CallID]*p.ToolOutput
}

// turnNotes is what the model is sent about a turn if it is interrupted.
type turnNotes struct {
	Aborted []string // calls that were interrupted
	Partial bool     // the last message is partial
	Shell   bool     // the user runs a command, and the model knows nothing of the turn
	Compact bool     // it only compacts
	Command string   // that command, until its output is reported
}

// Apply folds one event into the history.
func (h *History) Apply(e p.Event) {
	if h.applyShell(e) {
		return
	}
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		h.start(b.Settings)
	case *p.Configured:
		h.nextSettings = &b.Settings
	case *p.TurnStarted:
		h.closeGroup() // the end of the turn before may have been lost
		h.notes = turnNotes{Shell: b.Shell, Compact: b.Compact}
		h.configure()
		h.reportEndedBackground()
	case *p.UserMessage:
		if e.Turn == h.group.turn {
			h.group.partial = nil // a request follows, as below
		}
		h.closeGroup()
		own := h.add(e.Turn, 0, &p.PromptItem{Kind: p.PromptUser, Content: h.fitMessage(b)})
		own.own, own.id = true, b.Item
	case *p.ModelRequested:
		h.group.partial = nil // the model is asked again, and will say it again
		h.closeGroup()
		h.notes.Shell = false
		h.group = group{turn: e.Turn, response: b.Response}
	case *p.Reasoning:
		if !b.Partial {
			h.group.reasoning = append(h.group.reasoning, b)
		}
	case *p.AssistantMessage:
		h.message(e.Turn, b)
	case *p.ToolCall:
		h.call(e.Turn, b)
	case *p.ToolOutput:
		h.output(b)
	case *p.TurnEnded:
		h.endTurn(e.Turn, b)
	case *p.Reverted:
		h.revert(b.Before)
	case *p.BackgroundStarted:
		h.startBackground(b)
	case *p.BackgroundEnded:
		h.endBackground(b)
	case *p.Undone:
		h.closeGroup()
		h.add(0, 0, user(undoneText(b)))
	case *p.Imported:
		h.closeGroup()
		h.add(0, 0, user(importedText(b)))
	case *p.Compacted:
		h.compact(e.Turn, b)
	case *p.HistoryReduced:
		h.reduce(b.Part)
	case *p.HoldEnded:
		if b.Settings != nil {
			h.switchModel(*b.Settings)
			h.settings.Provider, h.settings.Model = b.Settings.Provider, b.Settings.Model
		}
	case *p.ModelEnded:
		if b.Error != nil && b.Error.Window > 0 {
			h.window = smaller(h.window, b.Error.Window)
		}
	case *p.PlanUpdated:
		h.plan = b.Plan
	}
}

// Items returns everything the model is to be sent, in order. The slice must
// not be changed; it stays as it is when the history grows.
func (h *History) Items() []*p.PromptItem {
	h.decode()
	if len(h.missing) > 0 || len(h.group.calls) > 0 {
		// This should not happen: the owner records repairs before a request, and
		// makes none while calls are open. A repaired request is still better than
		// one that the provider refuses.
		return h.patched()
	}
	return slices.Clip(h.items)
}

// Len is the number of items.
func (h *History) Len() int { h.decode(); return len(h.items) }

// Missing returns the calls that have no output although their response is no
// longer under way, oldest first.
func (h *History) Missing() []p.CallID {
	h.decode()
	return slices.Clone(h.missing)
}

// Compacted is the turn in which the history was last compacted, 0 for none.
// Turns before it cannot be reverted to.
func (h *History) Compacted() p.TurnID { return h.compacted }

// Find returns the latest call with the given wire id, one without an output
// first, and whether it has been answered.
func (h *History) Find(wireID string) (id p.CallID, answered, ok bool) {
	h.decode()
	outputs := map[p.CallID]bool{}
	for call := range h.group.outputs {
		outputs[call] = true
	}
	for _, e := range slices.Backward(h.entries) {
		if e.item.WireID != wireID {
			continue
		}
		switch e.item.Kind {
		case p.PromptOutput:
			outputs[e.item.Call] = true
			continue
		case p.PromptCall:
		default:
			continue // has no such id
		}
		if !outputs[e.item.Call] {
			return e.item.Call, false, true
		}
		if !ok {
			id, answered, ok = e.item.Call, true, true
		}
	}
	return id, answered, ok
}

func (h *History) add(turn p.TurnID, response int, item *p.PromptItem) *entry {
	h.decode()
	e := &entry{turn: turn, response: response, item: item}
	h.append(e)
	return e
}

func (h *History) append(e *entry) {
	if e.item.Kind == p.PromptCall {
		if h.known == nil {
			h.known = map[p.CallID]bool{}
		}
		h.known[e.item.Call] = true
	}
	h.entries = append(h.entries, e)
	h.items = append(h.items, e.item)
	h.size += itemSize(e.item)
}

// start puts the lead in front of everything: it is recorded later than the
// rest if the first record was lost.
func (h *History) start(s p.Settings) {
	h.decode()
	h.settings, h.lead, h.window = s, nil, s.ContextWindow
	if s.UserInstructions != "" {
		h.lead = append(h.lead, &entry{item: user(tag("user_instructions", "\n\n"+s.UserInstructions+"\n\n"))})
	}
	h.lead = append(h.lead, &entry{item: user(prompt.Environment(p.Settings{}, s))})
	h.group.before += len(h.lead)
	h.replace(slices.Concat(h.lead, h.entries))
}

// configure reports to the model what changed in its surroundings since the last
// turn, and nothing else.
func (h *History) configure() {
	if h.nextSettings == nil {
		return
	}
	if text := prompt.Environment(h.settings, *h.nextSettings); text != "" {
		h.add(0, 0, user(text))
	}
	h.switchModel(*h.nextSettings)
	if h.nextSettings.ContextWindow != h.settings.ContextWindow {
		h.window = h.nextSettings.ContextWindow
	}
	h.settings, h.nextSettings = *h.nextSettings, nil
}

func (h *History) message(turn p.TurnID, b *p.AssistantMessage) {
	if b.Partial {
		// Reasoning must be followed by the item that it led to, whole.
		h.group.reasoning, h.group.partial = nil, b
		return
	}
	h.enter(turn, b.Item.Response)
	calls := len(h.group.calls) > 0
	end := len(h.entries)
	h.flushReasoning(turn, b.Item.Response)
	h.add(turn, b.Item.Response, &p.PromptItem{Kind: p.PromptAssistant, Text: b.Text, Raw: b.Raw})
	if calls {
		// Outputs must follow their calls, so that what was said between
		// comes first. Nothing of this response has been handed out yet.
		h.moveBefore(h.group.before, end)
	}
}

// enter closes the latest response if an item belongs to another one: the
// record of the request between them was lost.
func (h *History) enter(turn p.TurnID, response int) {
	if c := h.group.calls; len(c) > 0 && (c[0].turn != turn || c[0].response != response) {
		h.closeGroup()
	}
}

// moveBefore moves the entries from end on to the place at.
func (h *History) moveBefore(at, end int) {
	moved := slices.Concat(h.entries[end:], h.entries[at:end])
	copy(h.entries[at:], moved)
	for i := at; i < len(h.entries); i++ {
		h.items[i] = h.entries[i].item
	}
	h.group.before += len(h.entries) - end
}

func (h *History) flushReasoning(turn p.TurnID, response int) {
	for _, r := range h.group.reasoning {
		h.add(turn, response, &p.PromptItem{Kind: p.PromptReasoning, Text: r.Text, Raw: r.Raw})
	}
	h.group.reasoning = nil
}

func (h *History) call(turn p.TurnID, b *p.ToolCall) {
	h.decode()
	if h.known[b.Call] {
		return // recorded twice
	}
	h.enter(turn, b.Call.Response)
	if len(h.group.calls) == 0 {
		h.group.before = len(h.entries)
	}
	h.flushReasoning(turn, b.Call.Response)
	e := h.add(turn, b.Call.Response, &p.PromptItem{
		Kind: p.PromptCall, Call: b.Call, WireID: b.WireID, CallKind: b.Kind,
		Name: b.Name, Arguments: b.Arguments, Raw: b.Raw,
	})
	h.group.calls = append(h.group.calls, e)
}

func (h *History) output(b *p.ToolOutput) {
	if !slices.ContainsFunc(h.group.calls, func(e *entry) bool { return e.item.Call == b.Call }) {
		h.lateOutput(b)
		return
	}
	if h.group.outputs == nil {
		h.group.outputs = map[p.CallID]*p.ToolOutput{}
	}
	if h.group.outputs[b.Call] == nil {
		h.group.outputs[b.Call] = b
	}
}

// closeGroup ends the latest response: its outputs follow its calls, in their
// order, and what has no output now is missing one.
func (h *History) closeGroup() {
	g := h.group
	h.group.reasoning, h.group.calls, h.group.outputs = nil, nil, nil
	for _, c := range g.calls {
		out := g.outputs[c.item.Call]
		if out == nil {
			h.missing = append(h.missing, c.item.Call)
			continue
		}
		h.add(c.turn, c.response, h.outputItem(c.item, out))
		if out.Aborted {
			h.notes.Aborted = append(h.notes.Aborted, describe(c.item))
		}
	}
	if g.partial != nil {
		h.group.partial = nil
		h.notes.Partial = true
		h.add(g.turn, g.response, &p.PromptItem{Kind: p.PromptAssistant, Text: g.partial.Text})
	}
}

func (h *History) outputItem(call *p.PromptItem, out *p.ToolOutput) *p.PromptItem {
	if out.Patch != nil && out.Patch.Applied {
		h.noteChange(out.Patch)
	}
	return &p.PromptItem{
		Kind: p.PromptOutput, Call: call.Call, WireID: call.WireID, CallKind: call.CallKind,
		Text: h.fitOutput(call.Call, out.Output), Content: out.Content, Failed: out.Failed,
	}
}

// lateOutput puts an output that was missing where it belongs: behind the
// calls, and the outputs, of its response. One without a call, and a second
// one, are left out.
func (h *History) lateOutput(b *p.ToolOutput) {
	h.decode()
	var call *entry
	for _, e := range h.entries {
		if e.item.Call != b.Call {
			continue
		}
		switch e.item.Kind {
		case p.PromptCall:
			call = e
		case p.PromptOutput:
			return
		}
	}
	if call == nil {
		return
	}
	h.missing = slices.DeleteFunc(h.missing, func(id p.CallID) bool { return id == b.Call })
	h.insert(call, h.outputItem(call.item, b))
}

// insert puts an output behind its call's response, in the order of the calls.
func (h *History) insert(call *entry, out *p.PromptItem) {
	at := slices.Index(h.entries, call) + 1
	end := len(h.entries)
	if len(h.group.calls) > 0 && at <= h.group.before {
		end = h.group.before // the response under way is another one
	}
	is := func(i int, kinds ...p.PromptKind) bool {
		return i < end && h.entries[i].turn == call.turn && h.entries[i].response == call.response &&
			slices.Contains(kinds, h.entries[i].item.Kind)
	}
	for i := at; is(i, p.PromptCall, p.PromptReasoning); i++ {
		if is(i, p.PromptCall) { // reasoning stays with the call that follows it
			at = i + 1
		}
	}
	for is(at, p.PromptOutput) && h.entries[at].item.Call.Index < call.item.Call.Index {
		at++
	}
	if at <= h.group.before {
		h.group.before++
	}
	h.replace(slices.Insert(slices.Clone(h.entries), at, &entry{turn: call.turn, response: call.response, item: out}))
}

// replace makes a new list of items, so that those handed out stay as they are.
func (h *History) replace(entries []*entry) {
	h.entries, h.size, h.items, h.known = nil, 0, make([]*p.PromptItem, 0, len(entries)), nil
	for _, e := range entries {
		h.append(e)
	}
}

// patched is a copy of the items with an answer for each call that lacks one.
func (h *History) patched() []*p.PromptItem {
	c := History{entries: slices.Clip(h.entries), items: slices.Clip(h.items), missing: slices.Clone(h.missing), group: h.group}
	c.group.partial = nil
	c.closeGroup()
	for _, id := range slices.Clone(c.missing) {
		c.lateOutput(&p.ToolOutput{Call: id, Output: "aborted"})
	}
	return c.items
}

func (h *History) endTurn(turn p.TurnID, b *p.TurnEnded) {
	h.closeGroup()
	if h.notes.Command != "" { // the record of its output was damaged, or never made
		h.reportShell(turn, &p.ToolOutput{Output: "What came of it is not known."})
	}
	if text := abortedText(b, h.notes); text != "" && !h.notes.Shell {
		h.add(turn, 0, user(text))
	}
	h.group, h.notes = group{}, turnNotes{}
}

func (h *History) revert(before p.TurnID) {
	h.decode()
	h.closeGroup()
	keep := slices.DeleteFunc(slices.Clone(h.entries), func(e *entry) bool { return e.turn >= before })
	h.missing = slices.DeleteFunc(h.missing, func(id p.CallID) bool { return id.Turn >= before })
	h.replace(keep)
}
