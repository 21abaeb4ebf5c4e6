package modeltest

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

// An encoder writes the events of one response in the form of a wire. Every
// string is one whole event.
type encoder interface {
	start() []string
	say(deltas []string, whole bool) []string
	think(parts [][]string) []string
	calls(calls []ToolCall, whole bool) []string
	end(reason string, calls bool, usage *protocol.Usage) []string
	incomplete(reason string, usage *protocol.Usage) []string
	fail(code, message string) []string
	errorEvent(code, message string) []string
	ping() string
}

// obj is a JSON object.
type obj = emit.Object

// responsesEncoder is the encoder of the Responses wire.
type responsesEncoder struct{ *emit.Encoder }

func (e responsesEncoder) start() []string                             { return e.Start() }
func (e responsesEncoder) say(deltas []string, whole bool) []string    { return e.Say(deltas, whole) }
func (e responsesEncoder) think(parts [][]string) []string             { return e.Think(parts) }
func (e responsesEncoder) calls(calls []ToolCall, whole bool) []string { return e.Calls(calls, whole) }

func (e responsesEncoder) fail(code, message string) []string { return e.Fail(code, message) }

func (e responsesEncoder) errorEvent(code, message string) []string { return e.Error(code, message) }
func (e responsesEncoder) ping() string                             { return e.Ping() }

func (e responsesEncoder) end(_ string, _ bool, usage *protocol.Usage) []string { return e.End(usage) }

func (e responsesEncoder) incomplete(reason string, usage *protocol.Usage) []string {
	return e.Incomplete(reason, usage)
}

func newEncoder(req *Request) encoder {
	model, _ := req.head.Model.(string)
	switch req.Wire {
	case wirecheck.Chat:
		return &chatEncoder{number: req.Number, model: model}
	case wirecheck.Anthropic:
		return &anthropicEncoder{number: req.Number, model: model}
	}
	return responsesEncoder{&emit.Encoder{Number: req.Number, Model: model}}
}

// A player carries out the steps of one reply. Its methods stop it by a panic
// with stopped when the client is gone or the reply is over.
type player struct {
	ctx    context.Context
	w      http.ResponseWriter
	enc    encoder
	reply  Reply
	begun  bool
	ended  bool
	sent   int // bytes of the body
	calls  bool
	usage  *protocol.Usage
	reason string

	events int // sent so far
	gateAt int // after how many events to wait for gate
	gate   *Gate
}

type stopped struct{ gone bool }

func play(w http.ResponseWriter, r *http.Request, req *Request, reply Reply) {
	if reply.status != 0 {
		playStatus(w, reply)
		return
	}
	p := &player{
		ctx: r.Context(), w: w, enc: newEncoder(req), reply: reply,
		usage: &protocol.Usage{Input: 10, Output: 5, Total: 15},
	}
	if reply.usage != nil {
		p.usage = reply.usage()
	}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case stopped:
			if v.gone {
				close(req.gone)
			}
		default:
			panic(v)
		}
	}()
	p.run()
}

func playStatus(w http.ResponseWriter, reply Reply) {
	w.Header().Set("Content-Type", "application/json")
	for name, values := range reply.header {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.status)
	io.WriteString(w, reply.body)
}

func (p *player) run() {
	for _, step := range p.reply.steps {
		step.run(p)
		if p.ended {
			break
		}
	}
	if !p.ended {
		p.send(p.enc.end(p.reason, p.calls, p.usage))
	}
	p.begin()
	if p.reply.keepOpen {
		p.wait(nil)
	}
}

// begin sends what comes before everything else.
func (p *player) begin() {
	if p.begun {
		return
	}
	p.begun = true
	p.w.Header().Set("Content-Type", "text/event-stream")
	p.w.WriteHeader(http.StatusOK)
	p.flush()
	p.send(p.enc.start())
}

func (p *player) send(events []string) {
	p.begin()
	for _, e := range events {
		p.write(e)
		p.events++
		if p.gate != nil && p.events == p.gateAt {
			p.gate.reach()
			p.wait(p.gate.open)
		}
	}
}

// write sends bytes of the body as the reply says: in pieces, or not at all.
func (p *player) write(s string) {
	p.begin()
	if p.reply.cut && p.sent+len(s) >= p.reply.limit {
		s = s[:p.reply.limit-p.sent]
		p.put(s)
		if p.reply.clean {
			panic(stopped{})
		}
		p.drop()
	}
	n := p.reply.slow
	for n > 0 && len(s) > n {
		p.put(s[:n])
		p.sleep(p.reply.every)
		s = s[n:]
	}
	p.put(s)
}

func (p *player) put(s string) {
	p.sent += len(s)
	if _, err := io.WriteString(p.w, s); err != nil || p.ctx.Err() != nil {
		panic(stopped{gone: true})
	}
	p.flush()
}

func (p *player) flush() {
	if f, ok := p.w.(http.Flusher); ok {
		f.Flush()
	}
}

func (p *player) wait(ch <-chan struct{}) {
	select {
	case <-ch:
	case <-p.ctx.Done():
		panic(stopped{gone: true})
	}
}

func (p *player) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
		panic(stopped{gone: true})
	}
}

// drop cuts the connection; net/http and inproc know this panic.
func (p *player) drop() { panic(http.ErrAbortHandler) }
