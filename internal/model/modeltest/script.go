package modeltest

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/protocol"
)

// A Reply is how one request is answered.
type Reply struct {
	steps    []Step
	status   int
	body     string
	header   http.Header
	from     func(*Request) Reply
	cut      bool // drop the connection after limit bytes
	limit    int
	clean    bool // a cut looks like a regular end of the body
	slow     int  // bytes at a time; 0 is all
	every    time.Duration
	keepOpen bool
	usage    func() *protocol.Usage // what it says it costs; nil is the usual
}

// Respond is a reply that streams. It begins and ends as the wire wants; the
// steps are what comes between. Waiting steps at the very beginning are done before the
// headers are sent.
func Respond(steps ...Step) Reply { return Reply{steps: steps} }

// Status is a reply with an HTTP status, a body, and headers as names and values.
func Status(status int, body string, headers ...string) Reply {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return Reply{status: status, body: body, header: h}
}

// From is a reply that depends on the request.
func From(f func(*Request) Reply) Reply { return Reply{from: f} }

// DropAfter cuts the connection when n bytes of the body have been sent.
func (r Reply) DropAfter(n int) Reply {
	r.cut, r.limit = true, n
	return r
}

// EndAfter ends the body when n bytes of it have been sent, as if that were all.
func (r Reply) EndAfter(n int) Reply {
	r.cut, r.limit, r.clean = true, n, true
	return r
}

// Slowly sends the body n bytes at a time, with a wait after each.
func (r Reply) Slowly(n int, every time.Duration) Reply {
	r.slow, r.every = n, every
	return r
}

// KeepOpen leaves the connection open after the end, until the client hangs up.
func (r Reply) KeepOpen() Reply {
	r.keepOpen = true
	return r
}

// A Step is a part of a streamed reply.
type Step struct{ run func(*player) }

// Say is a message that arrives in the given pieces.
func Say(deltas ...string) Step {
	return Step{func(p *player) { p.send(p.enc.say(deltas, true)) }}
}

// SayCut is a message that begins and is not finished.
func SayCut(deltas ...string) Step {
	return Step{func(p *player) { p.send(p.enc.say(deltas, false)) }}
}

// Think is a piece of reasoning that arrives in the given pieces.
func Think(deltas ...string) Step {
	return Step{func(p *player) { p.send(p.enc.think([][]string{deltas})) }}
}

// ThinkParts is reasoning with several sections, where the wire knows them.
func ThinkParts(parts ...string) Step {
	var list [][]string
	for _, part := range parts {
		list = append(list, []string{part})
	}
	return Step{func(p *player) { p.send(p.enc.think(list)) }}
}

// A ToolCall is a call for a script.
type ToolCall = emit.Call

// Call is one function call.
func Call(id, name, arguments string) Step {
	return Calls(ToolCall{ID: id, Name: name, Arguments: arguments})
}

// Custom is one custom tool call. Wires that have no such thing send a function call.
func Custom(id, name, input string) Step {
	return Calls(ToolCall{Kind: protocol.CallCustom, ID: id, Name: name, Arguments: input})
}

// Calls are calls of one response whose arguments arrive interleaved, where the
// wire can do that.
func Calls(calls ...ToolCall) Step {
	return Step{func(p *player) {
		p.calls = true
		p.send(p.enc.calls(calls, true))
	}}
}

// CallCut is a call whose arguments begin and are not finished.
func CallCut(id, name, arguments string) Step {
	return Step{func(p *player) {
		p.calls = true
		p.send(p.enc.calls([]ToolCall{{ID: id, Name: name, Arguments: arguments}}, false))
	}}
}

// Usage is what the response says it cost.
func Usage(u protocol.Usage) Step {
	return Step{func(p *player) { p.usage = &u }}
}

// NoUsage makes the response say nothing of its cost.
func NoUsage() Step {
	return Step{func(p *player) { p.usage = nil }}
}

// Finish ends the response with the given reason of the wire in place of the usual one.
func Finish(reason string) Step {
	return Step{func(p *player) { p.reason = reason }}
}

// Incomplete ends the response as one that was cut short by the service.
func Incomplete(reason string) Step {
	return Step{func(p *player) {
		p.send(p.enc.incomplete(reason, p.usage))
		p.ended = true
	}}
}

// Fail ends the response with a failure.
func Fail(code, message string) Step {
	return Step{func(p *player) {
		p.send(p.enc.fail(code, message))
		p.ended = true
	}}
}

// ErrorEvent ends the response with the wire's bare error event.
func ErrorEvent(code, message string) Step {
	return Step{func(p *player) {
		p.send(p.enc.errorEvent(code, message))
		p.ended = true
	}}
}

// Raw sends bytes as they are.
func Raw(s string) Step {
	return Step{func(p *player) { p.write(s) }}
}

// Headers sends the headers and what the wire begins with.
func Headers() Step {
	return Step{func(p *player) { p.begin() }}
}

// Ping is a sign of life that means nothing.
func Ping() Step {
	return Step{func(p *player) { p.send([]string{p.enc.ping()}) }}
}

// Pause waits for a gate.
func Pause(g *Gate) Step {
	return Step{func(p *player) {
		g.reach()
		p.wait(g.open)
	}}
}

// Sleep waits for a while.
func Sleep(d time.Duration) Step {
	return Step{func(p *player) { p.sleep(d) }}
}

// Stall never goes on.
func Stall() Step {
	return Step{func(p *player) { p.wait(nil) }}
}

// Drop cuts the connection.
func Drop() Step {
	return Step{func(p *player) { p.drop() }}
}

// Close ends the body without the wire's end mark.
func Close() Step {
	return Step{func(p *player) { p.ended = true }}
}

// A Gate is a point in a script at which the server waits for the test.
type Gate struct {
	reached, open           chan struct{}
	reachedOnce, openedOnce sync.Once
}

// NewGate returns a gate that is closed.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), open: make(chan struct{})}
}

// Open lets the server go on. It may be called more than once, and at any time.
func (g *Gate) Open() { g.openedOnce.Do(func() { close(g.open) }) }

// Reached is closed when the server has come to the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Wait waits until the server has come to the gate.
func (g *Gate) Wait(tb testing.TB) {
	tb.Helper()
	Wait(tb, "the server at a gate", g.reached)
}

func (g *Gate) reach() { g.reachedOnce.Do(func() { close(g.reached) }) }

// pauseAfter waits for a gate when n events have been sent.
func pauseAfter(n int, g *Gate) Step {
	return Step{func(p *player) { p.gateAt, p.gate = n, g }}
}
