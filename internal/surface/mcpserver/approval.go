package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// A question is an approval that a client is asked for.
type question struct {
	*p.ApprovalRequested
	turn   p.TurnID
	wireID string
}

// An asker asks the client for the approvals of one conversation, as events
// about them come by. Its methods but answer are called from one goroutine.
type asker struct {
	life  context.Context
	s     *Server
	id    p.ConversationID
	ask   func(question) (method string, params any) // no method: the client cannot be asked
	names map[p.CallID]string
	open  map[p.CallID]*asking
	held  []question // not asked yet, because they may be over
	hold  bool
}

// An asking is a question that was put.
type asking struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// stop takes the question back; when it returns the client has been told.
func (a *asking) stop(cause error) {
	a.cancel(cause)
	<-a.done
}

var (
	errResolved = errors.New("the approval is resolved")
	errLeft     = errors.New("nobody follows the conversation any more")
)

func newAsker(life context.Context, s *Server, id p.ConversationID, ask func(question) (string, any)) *asker {
	return &asker{life: life, s: s, id: id, ask: ask, names: map[p.CallID]string{}, open: map[p.CallID]*asking{}}
}

// event looks at an event for something to ask.
func (a *asker) event(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ToolCall:
		a.names[b.Call] = b.WireID
	case *p.ApprovalRequested:
		name, ok := a.names[b.Call]
		if !ok {
			name = b.Call.String()
		}
		q := question{b, e.Turn, name}
		if a.hold {
			a.held = append(a.held, q)
			return
		}
		a.begin(q)
	case *p.ApprovalResolved:
		a.drop(b.Call)
	case *p.TurnEnded:
		for call := range a.open {
			a.drop(call)
		}
		a.held = nil
		clear(a.names)
	}
}

// resume asks what was held and is still open.
func (a *asker) resume() {
	a.hold = false
	for _, q := range a.held {
		a.begin(q)
	}
	a.held = nil
}

func (a *asker) begin(q question) {
	ctx, cancel := context.WithCancelCause(a.life)
	put := &asking{cancel, make(chan struct{})}
	a.open[q.Call] = put
	go func() { // ends with the answer, drop or close
		defer close(put.done)
		if answer := a.s.decide(ctx, a.id, q, a.ask); answer.Decision != "" {
			_, _ = a.s.o.Engine.Submit(a.life, a.id, answer) // somebody else may have been quicker
		}
	}()
}

func (a *asker) drop(call p.CallID) {
	for i, q := range a.held {
		if q.Call == call {
			a.held = append(a.held[:i:i], a.held[i+1:]...)
			break
		}
	}
	if put, ok := a.open[call]; ok {
		put.stop(errResolved)
		delete(a.open, call)
	}
}

// close takes back what is open and waits for it.
func (a *asker) close() {
	for _, put := range a.open {
		put.stop(errLeft)
	}
	clear(a.open)
}

// decide asks the client. No decision means that there is nobody to give one
// any more, or somebody else to be asked: the approval stays open or is over.
func (s *Server) decide(ctx context.Context, id p.ConversationID, q question, ask func(question) (string, any)) p.Approve {
	answer := p.Approve{Call: q.Call, Decision: p.Denied}
	method, params := ask(q)
	if method == "" {
		if !s.unheard(ctx, id) {
			answer.Decision = ""
		}
		answer.Message = "nobody can be asked here"
		return answer
	}
	reply, err := s.conn.Call(ctx, method, params)
	switch {
	case errors.Is(err, jsonrpc.ErrClosed) || ctx.Err() != nil:
		answer.Decision = ""
	case err == nil:
		answer.Decision = decisionOf(reply)
	}
	return answer
}

// decisionOf reads an answer in either form. What cannot be read is a no.
func decisionOf(reply json.RawMessage) p.Decision {
	var in decisionResult
	if json.Unmarshal(reply, &in) != nil {
		return p.Denied
	}
	if in.Decision != nil {
		switch *in.Decision {
		case p.Approved, p.ApprovedForSession, p.Abort:
			return *in.Decision
		}
		return p.Denied
	}
	switch in.Action {
	case "accept":
		return p.Approved
	case "cancel":
		return p.Abort
	}
	return p.Denied
}

// An elicitation is elicitation/create with what the clients of the tools expect beside it.
type elicitation struct {
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema"`
	Kind      string          `json:"codex_elicitation"`
	RequestID string          `json:"codex_mcp_tool_call_id"`
	EventID   string          `json:"codex_event_id"`
	CallID    string          `json:"codex_call_id"`
	Command   []string        `json:"codex_command,omitempty"`
	Cwd       string          `json:"codex_cwd,omitempty"`
	Changes   json.RawMessage `json:"codex_changes,omitempty"`
}

func (t *turnCall) elicit(q question) (string, any) { return t.s.elicitation(q, t.r.ID) }

// elicitation asks by MCP's own means, if the client knows them.
func (s *Server) elicitation(q question, request json.RawMessage) (string, any) {
	if !s.elicits.Load() {
		return "", nil
	}
	e := elicitation{
		Schema: json.RawMessage(`{"type":"object","properties":{}}`), RequestID: bare(request),
		EventID: strconv.Itoa(int(q.turn)), CallID: q.wireID,
	}
	if q.Kind == p.ApprovePatch {
		e.Kind, e.Changes = "patch-approval", event.Changes(q.Detail)
		e.Message = strings.TrimPrefix(q.Reason+"\nAllow these changes?", "\n")
		return "elicitation/create", e
	}
	e.Kind, e.Command, e.Cwd = "exec-approval", q.Command, q.Cwd
	e.Message = "Allow to run `" + event.ShellQuoted(q.Command) + "` in `" + q.Cwd + "`?"
	return "elicitation/create", e
}

// bare is an id as text.
func bare(id json.RawMessage) string {
	var s string
	if json.Unmarshal(id, &s) == nil {
		return s
	}
	return string(id)
}
