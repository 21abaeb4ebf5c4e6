package enginetest

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A TurnState is a state that a turn can be in. Enter brings a conversation whose turns have all ended into it, and returns the
// conversation, or the copy of it, that is in that state. It needs a synctest bubble.
type TurnState struct {
	Name  string
	Enter func(testing.TB, *Engine, p.ConversationID) p.ConversationID
}

// TurnStates are all of them, and those of a conversation whose turn has just ended. A conversation must be readable in each.
func TurnStates() []TurnState {
	return slices.Concat(requestStates(), callStates(), limitStates(), clientStates())
}

// requestStates are those of a model request.
func requestStates() []TurnState {
	return []TurnState{
		{"idle", func(_ testing.TB, _ *Engine, id p.ConversationID) p.ConversationID { return id }},
		requestState("requested", func(*Request) {}),
		requestState("streaming", stream),
		requestState("failed", func(r *Request) { r.Fail(Refused()) }),
		requestState("retrying", func(r *Request) { r.Delta("half"); r.Fail(Broken()) }),
	}
}

// callStates are those of a call.
func callStates() []TurnState {
	return []TurnState{
		callState("calling", "work", func(testing.TB, *Engine, *Run) {}),
		callState("looking", "look", func(testing.TB, *Engine, *Run) {}),
		callState("running", "work", runCommand),
		callState("patching", "work", func(t testing.TB, _ *Engine, r *Run) {
			r.record(t, &p.PatchStarted{Patch: "1", Call: r.Call.ID, Cwd: "/w", Changes: json.RawMessage(stateChanges)})
		}),
		callState("calling a server", "work", func(t testing.TB, _ *Engine, r *Run) {
			r.record(t, &p.ServerCallStarted{Call: r.Call.ID, Tool: stateTool, Arguments: json.RawMessage(`{}`)})
		}),
		callState("with a background command", "work", keepCommand),
		callState("waiting for a command", "work", func(_ testing.TB, _ *Engine, r *Run) { r.Ask("rm", "x") }),
		callState("waiting for a patch", "work", func(_ testing.TB, _ *Engine, r *Run) {
			r.Question(p.ApprovalRequested{Kind: p.ApprovePatch, Detail: json.RawMessage(stateChanges)})
		}),
		callState("waiting for a tool", "work", func(_ testing.TB, _ *Engine, r *Run) {
			r.Question(p.ApprovalRequested{Kind: p.ApproveTool, MCP: &stateTool, Detail: json.RawMessage(`{}`)})
		}),
		callState("questioned", "work", func(_ testing.TB, _ *Engine, r *Run) {
			go r.Call.Host.(tool.Elicitor).Elicit(r.Ctx, p.ElicitationRequested{Server: "s", Message: "who?"}) // ends with the turn
		}),
	}
}

// limitStates are those of a conversation that is too long, or of an account that is used up.
func limitStates() []TurnState {
	return []TurnState{
		{"compacting", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Must(id, p.Compact{})
			e.Request().Delta("a sum")
			return id
		}},
		{"compacting in a turn", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Say(id, "go")
			e.Request().Fail(&p.Error{Kind: p.ErrorContextLength, Message: "too long"})
			e.Request().Delta("a sum")
			return id
		}},
		{"held", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Must(id, p.Configure{Overrides: p.Overrides{OnLimit: new(p.OnLimitHold)}})
			e.Say(id, "go")
			e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "used up", After: time.Hour})
			return id
		}},
	}
}

// clientStates are those that a client brings about.
func clientStates() []TurnState {
	return []TurnState{
		{"stopping a request", stopRequest},
		{"stopping a call", stopCall},
		{"steered", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Say(id, "go")
			e.Request()
			e.Say(id, "more", p.Steer)
			return id
		}},
		{"queued", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Say(id, "go")
			e.Request()
			e.Say(id, "later", p.Queue)
			return id
		}},
		{"replaced", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Say(id, "go")
			e.Request().Delta("half")
			e.Say(id, "rather this", p.Replace)
			e.Request()
			return id
		}},
		{"shell", func(t testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Must(id, p.UserShell{Command: "ls"})
			runCommand(t, e, e.Run())
			return id
		}},
		{"interrupted", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Say(id, "go")
			e.Request().Delta("half")
			e.Must(id, p.Interrupt{})
			return id
		}},
		{"reverted", func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			turn := e.Say(id, "one too many").Turn
			e.Request().Answer("oh")
			synctest.Wait()
			e.Must(id, p.Revert{Before: turn})
			e.Say(id, "go")
			e.Request().Message("again")
			return id
		}},
		{"forked", func(t testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
			e.Say(id, "go")
			e.Request()
			fork, err := e.Fork(t.Context(), id, 0)
			if err != nil {
				t.Fatal(err)
			}
			e.Say(fork, "elsewhere")
			e.Request().Message("in the copy")
			return fork
		}},
	}
}

// stateChanges are those of a patch, stateTool that of a server.
const stateChanges = `{"/w/a":{"add":{"content":"x\n"}}}`

var stateTool = p.MCPTool{Server: "s", Name: "n"}

// requestState is one in which the model has got a request and done something.
func requestState(name string, then func(*Request)) TurnState {
	return TurnState{name, func(_ testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
		e.Say(id, "go")
		then(e.Request())
		return id
	}}
}

// callState is one in which a tool runs and has done something.
func callState(name, tool string, then func(testing.TB, *Engine, *Run)) TurnState {
	return TurnState{name, func(t testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
		e.Say(id, "go")
		r := e.Request()
		r.Call("w", tool, `{"path":"a"}`)
		r.End()
		then(t, e, e.Run())
		return id
	}}
}

func stream(r *Request) {
	r.Think("a thought")
	r.Message("before")
	r.Delta("half a sen")
}

func runCommand(t testing.TB, _ *Engine, r *Run) {
	r.record(t, &p.CommandStarted{Call: r.Call.ID, Command: []string{"make"}, Cwd: "/w"})
	r.Print("out\n")
}

func keepCommand(t testing.TB, e *Engine, r *Run) {
	r.record(t, &p.CommandStarted{Call: r.Call.ID, Command: []string{"serve"}, Cwd: "/w"})
	if err := r.Keep(e.Job(), `{"id":1}`); err != nil {
		t.Fatal(err)
	}
}

func stopRequest(t testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
	e.Say(id, "go")
	r := e.Request()
	r.Deaf()
	t.Cleanup(r.End)
	r.Delta("half")
	e.Must(id, p.Interrupt{})
	r.Stopped()
	return id
}

func stopCall(t testing.TB, e *Engine, id p.ConversationID) p.ConversationID {
	e.Say(id, "go")
	r := e.Request()
	r.Call("w", "work", "immortal")
	r.End()
	run := e.Run()
	t.Cleanup(func() { run.Finish("") })
	runCommand(t, e, run)
	e.Must(id, p.Interrupt{})
	<-run.Ctx.Done()
	return id
}

func (r *Run) record(t testing.TB, body p.Body) {
	t.Helper()
	if err := r.Call.Host.Record(r.Ctx, body); err != nil {
		t.Fatal(err)
	}
}
