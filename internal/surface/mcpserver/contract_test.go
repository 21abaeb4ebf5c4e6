package mcpserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
)

// A wire is a connection whose every line is held against the contract, which docs/mcp.md states:
//
//   - A follower (a call, the stream or the listener of a conversation) is told the start of a turn, then its events, then
//     exactly one end, and nothing of it afterwards. What begins in it has its end before.
//   - The answer to an interrupt, and that of a call, come when every follower of that conversation on
//     this connection has been told the end.
//   - Text is told in pieces that add up to the whole, and as a whole only if it was finished.
//   - There is one stream of a conversation, and a call's events come once under their bare type.
//   - An approval is one open question at a time, and none when its turn has ended.
//   - Every request is answered once, or was cancelled.
type wire struct {
	*client
	next  int
	asked map[string]*request // by id
	convs map[string]*followed
	open  map[string]string // questions: the server's id to the call that they are about
	calls map[string]string // the calls that are asked about: to the server's id
	over  map[string]bool   // the calls that were to be asked about, of turns whose end was told
}

// A request is what this client asked for.
type request struct {
	what, conversation  string
	answered, cancelled bool
	before              map[*toldTo]int // for an interrupt: the followers that were in a turn, and how many ends they had been told
}

// followed is what this client is told of one conversation.
type followed struct {
	listener, stream *toldTo
	late             bool               // the listener came later than the client
	streamed         int                // the number of the last event that a stream told
	streams          int                // how many there were
	calls            map[string]*toldTo // by request
}

// toldTo is what one follower is told.
type toldTo struct {
	name     string
	inTurn   bool
	turn     string // its id, as far as the follower is told
	ends     int
	over     map[string]bool
	commands map[string]bool
	middle   bool     // it may have come in the middle of a message
	text     string   // the pieces of the message that is under way
	story    []string // whole events
	asks     []string // the calls of the turn that a client must be asked about
	bare     string   // for a call: the event that has to come under its bare type
}

func newTold(name string) *toldTo {
	return &toldTo{name: name, over: map[string]bool{}, commands: map[string]bool{}}
}

func newWire(t *testing.T, c *client) *wire {
	w := &wire{client: c, asked: map[string]*request{}, convs: map[string]*followed{}, open: map[string]string{}, calls: map[string]string{}, over: map[string]bool{}}
	w.client.t = t
	return w
}

func (w *wire) conv(id string) *followed {
	if w.convs[id] == nil {
		w.convs[id] = &followed{calls: map[string]*toldTo{}}
	}
	return w.convs[id]
}

// followers are all of a conversation.
func (f *followed) followers() []*toldTo {
	list := slices.Collect(maps.Values(f.calls))
	for _, v := range []*toldTo{f.listener, f.stream} {
		if v != nil {
			list = append(list, v)
		}
	}
	return list
}

// A line is what the server sends, in any of its forms.
type wireLine struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  json.RawMessage
	Params struct {
		Meta struct {
			RequestID      json.RawMessage
			ConversationID string
			Seq            int
		} `json:"_meta"`
		ID             string
		Seq            int
		Msg            event.Msg
		ConversationID string
		State          *struct{ Events []streamEvent } `json:"initial_state"`
		RequestID      json.RawMessage
		CallID         string `json:"call_id"`
		Elicited       string `json:"codex_call_id"`
	}
}

// hear takes everything that has come.
func (w *wire) hear() {
	w.t.Helper()
	synctest.Wait()
	for len(w.lines) > 0 {
		line := <-w.lines
		var l wireLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		delete(l.Params.Msg, "model_context_window") // streams do not have it
		w.take(l, line)
		if w.t.Failed() {
			w.t.FailNow()
		}
	}
	for call := range w.calls {
		if w.over[call] {
			w.t.Fatalf("%s is asked about, but its turn has ended", call)
		}
	}
}

func (w *wire) take(l wireLine, line string) {
	w.t.Helper()
	p := &l.Params
	switch {
	case l.Method == "":
		w.answer(l, line)
	case l.ID != nil:
		w.question(l, line)
	case l.Method == cancelMethod:
		id := bare(p.RequestID)
		delete(w.calls, w.open[id])
		delete(w.open, id)
	case strings.HasPrefix(l.Method, "codex/event/"):
		w.event(w.conv(p.ConversationID).listener, p.ID, p.Msg, line)
	case p.State != nil:
		st := w.conv(p.Meta.ConversationID).stream
		for _, e := range p.State.Events {
			delete(e.Msg, "model_context_window")
			w.event(st, "", e.Msg, line)
			w.conv(p.Meta.ConversationID).streamed = max(w.conv(p.Meta.ConversationID).streamed, int(e.Seq))
		}
	case l.Method == "codex/event":
		w.callEvent(l, line)
	case p.Msg != nil && p.Meta.RequestID != nil:
		v := w.conv(p.Meta.ConversationID).calls[bare(p.Meta.RequestID)]
		if v == nil || v.bare != text(p.Msg) {
			w.t.Errorf("a bare copy that nobody is waiting for: %s", line)
			return
		}
		v.bare = ""
	case p.Msg != nil:
		st := w.conv(p.Meta.ConversationID).stream
		w.event(st, "", p.Msg, line)
		w.conv(p.Meta.ConversationID).streamed = max(w.conv(p.Meta.ConversationID).streamed, p.Seq)
	}
}

func text(m event.Msg) string {
	b, _ := json.Marshal(m)
	return string(b)
}

func (w *wire) callEvent(l wireLine, line string) {
	w.t.Helper()
	id := bare(l.Params.Meta.RequestID)
	f := w.conv(l.Params.Meta.ConversationID)
	v := f.calls[id]
	if v == nil {
		v = newTold("call " + id)
		f.calls[id] = v
	}
	if r := w.asked[id]; r == nil || r.answered {
		w.t.Errorf("%s was answered before %s", v.name, line)
	}
	if v.bare != "" {
		w.t.Errorf("%s got no bare copy of %s", v.name, v.bare)
	}
	v.bare = ""
	joined := l.Params.Meta.Seq == 0 && l.Params.ID != "" // in the middle: a stream has told of the time before
	streamed := l.Params.Meta.Seq != 0 && l.Params.Meta.Seq <= f.streamed || joined && f.stream != nil
	if !l.Params.Msg.Delta() && !streamed {
		v.bare = text(l.Params.Msg)
	}
	w.event(v, l.Params.ID, l.Params.Msg, line)
	v.middle = v.middle || joined && l.Params.Msg.Type() == "task_started"
}

// event holds one event against what its follower was told before.
func (w *wire) event(v *toldTo, turn string, m event.Msg, line string) {
	w.t.Helper()
	if v == nil {
		w.t.Errorf("no client follows, and is told %s", line)
		return
	}
	wrong := func(what string) {
		w.t.Errorf("%s: %s: %s\nin all: %s", v.name, what, line, strings.Join(v.story, "\n  "))
	}
	if !m.Delta() {
		v.story = append(v.story, text(m))
	}
	if turn != "" && v.over[turn] {
		wrong("an event of a turn that has ended")
	}
	switch kind := m.Type(); kind {
	case "task_started":
		if v.inTurn {
			wrong("a start in a turn")
		}
		v.inTurn, v.turn = true, turn
	case "task_complete", "turn_aborted":
		if !v.inTurn {
			wrong("an end without a turn")
		}
		if len(v.commands) > 0 {
			wrong("the end of a turn with open commands")
		}
		for _, call := range v.asks {
			w.over[call] = true
		}
		v.inTurn, v.text, v.asks = false, "", nil
		v.ends++
		if turn != "" {
			v.over[turn] = true
		}
	case "agent_message_delta":
		v.text += m["delta"].(string)
	case "agent_message":
		if v.text != "" && v.text != m["message"] && !v.middle {
			wrong("the pieces are " + v.text)
		}
		v.text, v.middle = "", false
	case "exec_approval_request":
		v.asks = append(v.asks, m["call_id"].(string))
	case "stream_error": // what comes now begins anew
		v.text = ""
	case "exec_command_begin":
		v.commands[m["call_id"].(string)] = true
	case "exec_command_end":
		if !v.commands[m["call_id"].(string)] {
			wrong("the end of a command that has not begun")
		}
		delete(v.commands, m["call_id"].(string))
	case "session_configured", "background_event":
	default:
		if !v.inTurn {
			wrong("an event outside a turn")
		}
	}
}

func (w *wire) question(l wireLine, line string) {
	w.t.Helper()
	id, call := bare(l.ID), l.Params.CallID+l.Params.Elicited
	if w.calls[call] != "" {
		w.t.Errorf("call %s is asked about twice: %s", call, line)
	}
	w.open[id], w.calls[call] = call, id
}

// answer holds an answer against what was told before it.
func (w *wire) answer(l wireLine, line string) {
	w.t.Helper()
	id := bare(l.ID)
	r := w.asked[id]
	switch {
	case r == nil:
		w.t.Errorf("an answer to nothing: %s", line)
		return
	case r.answered:
		w.t.Errorf("answered twice: %s", line)
	}
	r.answered = true
	for v, ends := range r.before {
		if strings.Contains(line, `"abortReason":"`) && v.ends == ends && w.follows(r.conversation, v) {
			w.t.Errorf("the answer overtook the end that %s is told: %s", v.name, line)
		}
	}
	if r.what != "codex-reply" {
		return
	}
	f := w.conv(r.conversation)
	own := f.calls[id]
	if own == nil || strings.Contains(line, "not delivered") {
		return
	}
	if own.inTurn || own.bare != "" {
		w.t.Errorf("answered in its turn: %s", line)
	}
	if l := f.listener; l != nil && own.turn != "" && !l.over[own.turn] && l.turn == own.turn {
		w.t.Errorf("the answer overtook the end that the listener is told: %s", line)
	}
}

// follows reports whether a client follows a conversation still. A call that was cancelled may have taken its
// message back before the end.
func (w *wire) follows(conversation string, v *toldTo) bool {
	if r := w.asked[strings.TrimPrefix(v.name, "call ")]; r != nil && (r.cancelled || r.answered) {
		return false
	}
	return slices.Contains(w.conv(conversation).followers(), v)
}

// settled checks that nothing is left open.
func (w *wire) settled() {
	w.t.Helper()
	for id, r := range w.asked {
		if !r.answered && !r.cancelled {
			w.t.Errorf("request %s was not answered: %s", id, r.what)
		}
	}
	for call := range w.calls {
		w.t.Errorf("%s is still asked about", call)
	}
	for id, f := range w.convs {
		for _, v := range f.followers() {
			call := strings.TrimPrefix(v.name, "call ")
			if r := w.asked[call]; v.inTurn && (r == nil || !r.cancelled) {
				w.t.Errorf("%s of %s was not told the end", v.name, id)
			}
		}
	}
}
