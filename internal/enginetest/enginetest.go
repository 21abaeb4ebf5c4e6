// Package enginetest is an engine in memory whose model and tools are played
// by the test.
//
// The test waits for a [Request] and says what the model says; it waits for a
// [Run] and does what the tool does; a [Watch] is a client. Everything is meant to run in
// a testing/synctest bubble, where "and then nothing" can be known for sure.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Engine is an engine whose workers are played by the test.
type Engine struct {
	*engine.Local
	Store journal.Store

	client engine.Engine // how the test uses it: Local, or another process's view of it

	t        testing.TB
	requests chan *Request
	runs     chan *Run
}

// Options change what New makes.
type Options struct {
	Store  journal.Store // nil is a fresh one in memory
	Config func(*engine.Config)

	IdleAfter, IdleFollowed time.Duration // as in engine.Config
	Changed                 func()        // the same

	Remote bool // the test uses the engine as another process would
}

// New starts an engine with two tools, "work" and the read-only "look", and one
// for the user's own commands.
// It is shut down when the test ends.
func New(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Store == nil {
		o.Store = journal.NewMemoryStore(journal.MemoryOptions{})
	}
	e := &Engine{t: t, Store: o.Store, requests: make(chan *Request), runs: make(chan *Run)}
	cfg := engine.Config{
		Model:     native.Model(client{e}),
		Tools:     native.Tools([]tool.Tool{puppet{e, "work", false}, puppet{e, "look", true}, puppet{e, "user_shell", false}}),
		Version:   "test",
		IdleAfter: o.IdleAfter, IdleFollowed: o.IdleFollowed, Changed: o.Changed,
		Recovery: engine.Recovery{ // of processes and patches that a test makes up
			Reclaim: func(context.Context, json.RawMessage) (int, error) { return 0, nil },
			Settle:  func(json.RawMessage, bool) (bool, string, error) { return false, "", errors.New("not in this test") },
		},
	}
	if o.Config != nil {
		o.Config(&cfg)
	}
	e.Local = Open(t, o.Store, cfg)
	e.client = e.Local
	if o.Remote {
		e.client = e.connect()
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = e.Local.Shutdown(ctx) // a test may have made the journal fail
	})
	return e
}

// Open opens an engine over a store. Without a model it is one that only reads and repairs.
func Open(t testing.TB, s journal.Store, c engine.Config) *engine.Local {
	t.Helper()
	c.Store = native.Store(s, nil)
	if c.Model == nil {
		c.Model = engine.ModelFunc(func(context.Context, engine.Request, *engine.Reply) error { return Refused() })
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Begin creates a conversation.
func (e *Engine) Begin() p.ConversationID {
	e.t.Helper()
	id, err := e.Create(e.t.Context(), p.Settings{Cwd: "/w", Model: "puppet"})
	if err != nil {
		e.t.Fatalf("create conversation: %v", err)
	}
	return id
}

// Say submits a message and fails the test if it is refused.
func (e *Engine) Say(id p.ConversationID, text string, mode ...p.WhenBusy) p.Receipt {
	e.t.Helper()
	ut := p.UserTurn{Content: p.Text(text)}
	if len(mode) > 0 {
		ut.WhenBusy = mode[0]
	}
	return e.Must(id, ut)
}

// Must submits an op and fails the test if it is refused.
func (e *Engine) Must(id p.ConversationID, op p.Op) p.Receipt {
	e.t.Helper()
	r, err := e.Submit(e.t.Context(), id, op)
	if err != nil {
		e.t.Fatalf("submit %T: %v", op, err)
	}
	return r
}

// A client hands each model request to the test.
type client struct{ e *Engine }

func (c client) Stream(ctx context.Context, pr model.Prompt, sink model.Sink) (model.End, error) {
	r := &Request{Prompt: pr, ctx: ctx, sink: sink, end: make(chan error), Usage: &p.Usage{Input: 10, Output: 1, Total: 11}}
	select {
	case c.e.requests <- r:
	case <-ctx.Done():
		return model.End{}, context.Cause(ctx)
	}
	select {
	case err := <-r.end:
		return model.End{Usage: r.Usage}, err
	case <-ctx.Done():
	}
	if r.deaf.Load() {
		return model.End{}, <-r.end
	}
	return model.End{}, context.Cause(ctx)
}

// A Request is a model request that the test answers.
type Request struct {
	Prompt model.Prompt
	Usage  *p.Usage

	ctx   context.Context
	sink  model.Sink
	end   chan error
	index int
	deaf  atomic.Bool
}

// Request waits for the next model request.
func (e *Engine) Request() *Request {
	e.t.Helper()
	select {
	case r := <-e.requests:
		return r
	case <-time.After(time.Hour):
		e.t.Fatal("no model request")
		return nil
	}
}

// Delta says a piece of a message that is not finished.
func (r *Request) Delta(text string) { r.sink.Delta(r.index, p.DeltaMessage, text) }

// Message finishes a message.
func (r *Request) Message(text string) {
	r.sink.Done(r.index, &p.AssistantMessage{Text: text})
	r.index++
}

// Think finishes a piece of reasoning.
func (r *Request) Think(text string) {
	r.sink.Done(r.index, &p.Reasoning{Text: text})
	r.index++
}

// Call asks for a tool.
func (r *Request) Call(wireID, name, args string) {
	r.sink.Done(r.index, &p.ToolCall{WireID: wireID, Kind: p.CallFunction, Name: name, Arguments: args})
	r.index++
}

// End ends the response as it should.
func (r *Request) End() { r.Fail(nil) }

// Fail ends the response with an error.
func (r *Request) Fail(err error) {
	if r.deaf.Load() {
		r.end <- err
		return
	}
	select {
	case r.end <- err:
	case <-r.ctx.Done():
	}
}

// Deaf makes the request one that does not hear that it is stopped.
func (r *Request) Deaf() { r.deaf.Store(true) }

// Answer is a whole response that says one thing.
func (r *Request) Answer(text string) {
	r.Message(text)
	r.End()
}

// Ctx is the context of the request.
func (r *Request) Ctx() context.Context { return r.ctx }

// Stopped waits until the request is cancelled.
func (r *Request) Stopped() { <-r.ctx.Done() }

// Inputs are the texts of the prompt, one line for each item.
func (r *Request) Inputs() []string {
	var lines []string
	for _, it := range r.Prompt.Items {
		lines = append(lines, PromptLine(it))
	}
	return lines
}

// A puppet is a tool that the test plays.
type puppet struct {
	e        *Engine
	name     string
	readOnly bool
}

func (t puppet) Spec() model.ToolSpec { return model.ToolSpec{Name: t.name, Kind: p.CallFunction} }
func (t puppet) ReadOnly() bool       { return t.readOnly }

func (t puppet) Run(ctx context.Context, call tool.Call) tool.Result {
	r := &Run{Call: call, Ctx: ctx, result: make(chan tool.Result)}
	select {
	case t.e.runs <- r:
	case <-ctx.Done():
		return tool.Result{Output: p.ToolOutput{Aborted: true}}
	}
	if call.Name == "work" && call.Arguments == "immortal" {
		return <-r.result
	}
	select {
	case res := <-r.result:
		return res
	case <-ctx.Done():
		return tool.Result{Output: p.ToolOutput{Output: r.printed, Aborted: true, Command: &p.CommandResult{ExitCode: -1, Output: r.printed, Killed: 1}}}
	}
}

// A Run is a call that the test carries out.
type Run struct {
	Call tool.Call
	Ctx  context.Context

	printed string
	result  chan tool.Result
}

// Run waits for the next call that is run.
func (e *Engine) Run() *Run {
	e.t.Helper()
	select {
	case r := <-e.runs:
		return r
	case <-time.After(time.Hour):
		e.t.Fatal("no call was run")
		return nil
	}
}

// Idle fails the test if a model request or a run is under way that the test
// has not taken.
func (e *Engine) Idle() {
	e.t.Helper()
	synctest.Wait()
	select {
	case r := <-e.requests:
		e.t.Fatalf("unexpected model request: %q", r.Inputs())
	case r := <-e.runs:
		e.t.Fatalf("unexpected run of %s", r.Call.ID)
	default:
	}
}

// Print writes output as it arrives.
func (r *Run) Print(text string) {
	r.printed += text
	r.Call.Host.Write(p.DeltaStdout, text)
}

// Finish ends the run with an output.
func (r *Run) Finish(output string) {
	r.result <- tool.Result{Output: p.ToolOutput{Output: output}}
}

// Ask ends the run with a question.
func (r *Run) Ask(command ...string) {
	r.result <- tool.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: command, Reason: "why not"}}
}

// Question ends the run with a question of any kind.
func (r *Run) Question(q p.ApprovalRequested) { r.result <- tool.Result{Ask: &q} }

// Broken is a model error that is worth another try.
func Broken() error {
	return &p.Error{Kind: p.ErrorConnection, Message: "stream broke", Retry: true}
}

// Refused is a model error that is not.
func Refused() error { return &p.Error{Kind: p.ErrorRequest, Message: "refused"} }

// Return ends the run with a whole output.
func (r *Run) Return(out p.ToolOutput) { r.result <- tool.Result{Output: out} }
