package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// A question is an approval that a client is asked for.
type question struct {
	*p.ApprovalRequested
	turn   p.TurnID
	wireID string
}

// An asker looks at the events that a follower is given for approvals to ask for. Its methods are
// called from one goroutine.
type asker struct {
	desk  *desk
	way   *way
	names map[p.CallID]string
	held  []question // not asked yet, because they may be over
	hold  bool
}

func newAsker(life context.Context, d *desk, by rank, ask func(question) (string, any)) *asker {
	return &asker{desk: d, way: &way{by, life, ask}, names: map[p.CallID]string{}}
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
		a.desk.ask(q)
	case *p.ApprovalResolved:
		a.held = slices.DeleteFunc(a.held, func(q question) bool { return q.Call == b.Call })
		if !a.hold {
			a.desk.resolved(b.Call)
		}
	case *p.TurnEnded:
		a.held = nil
		clear(a.names)
		if !a.hold {
			a.desk.ended(e.Turn)
		}
	}
}

// resume offers this way of asking, and asks what was held and is still open.
func (a *asker) resume() {
	a.hold = false
	a.desk.enter(a.way)
	for _, q := range a.held {
		a.desk.ask(q)
	}
	a.held = nil
}

// close withdraws what was asked in this way.
func (a *asker) close() { a.desk.leave(a.way) }

// decisionOf reads an answer in either form. What cannot be read is a no, and not clear.
func decisionOf(reply json.RawMessage) (d p.Decision, clear bool) {
	var in decisionResult
	if json.Unmarshal(reply, &in) != nil {
		return p.Denied, false
	}
	if in.Decision != nil {
		switch *in.Decision {
		case p.Approved, p.ApprovedForSession, p.Abort, p.Denied:
			return *in.Decision, true
		}
		return p.Denied, false
	}
	switch in.Action {
	case "accept":
		return p.Approved, true
	case "cancel":
		return p.Abort, true
	case "decline":
		return p.Denied, true
	}
	return p.Denied, false
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
