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

// A question is what a client is asked: an approval, or what an MCP server wants to know.
type question struct {
	*p.ApprovalRequested // of an elicitation: only the call
	turn                 p.TurnID
	wireID               string
	elicited             *p.ElicitationRequested // nil for an approval
}

// A questionID names a question of a conversation.
type questionID struct {
	call   p.CallID
	number int // of an elicitation
}

func (q question) id() questionID {
	if q.elicited != nil {
		return questionID{q.Call, q.elicited.Number}
	}
	return questionID{call: q.Call}
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
		a.ask(question{ApprovalRequested: b, turn: e.Turn, wireID: name})
	case *p.ElicitationRequested:
		a.ask(question{ApprovalRequested: &p.ApprovalRequested{Call: b.Call}, turn: e.Turn, elicited: b})
	case *p.ApprovalResolved:
		a.resolved(questionID{call: b.Call})
	case *p.ElicitationResolved:
		a.resolved(questionID{b.Call, b.Number})
	case *p.TurnEnded:
		a.held = nil
		clear(a.names)
		if !a.hold {
			a.desk.ended(e.Turn)
		}
	}
}

func (a *asker) ask(q question) {
	if a.hold {
		a.held = append(a.held, q)
		return
	}
	a.desk.ask(q)
}

func (a *asker) resolved(id questionID) {
	a.held = slices.DeleteFunc(a.held, func(q question) bool { return q.id() == id })
	if !a.hold {
		a.desk.resolved(id)
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
	if q.elicited != nil {
		return "elicitation/create", passedOn(q.elicited)
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

// A passedElicitation is elicitation/create as an MCP server sent it to us.
type passedElicitation struct {
	Mode    string          `json:"mode,omitempty"` // url, or a form
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema,omitempty"`
	URL     string          `json:"url,omitempty"`
	ID      string          `json:"elicitationId,omitempty"` // with url
}

// passedOn asks the client what a server asks us, and says who wants to know.
func passedOn(b *p.ElicitationRequested) passedElicitation {
	e := passedElicitation{Message: "The MCP server " + b.Server + " asks: " + b.Message, Schema: b.Schema, URL: b.URL}
	switch {
	case b.URL != "":
		e.Mode, e.ID = "url", b.Call.String()+"/"+strconv.Itoa(b.Number)
	case e.Schema == nil:
		e.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return e
}

// answerOf reads the answer to a question that was passed on. What cannot be read cancels it.
func answerOf(b *p.ElicitationRequested, reply json.RawMessage) (a p.AnswerElicitation, clear bool) {
	a = p.AnswerElicitation{Call: b.Call, Number: b.Number}
	var in struct {
		Action  p.ElicitationAction
		Content json.RawMessage
	}
	_ = json.Unmarshal(reply, &in) // then there is no action
	a.Action = in.Action
	if in.Action == p.ElicitationAccept && string(in.Content) != "null" {
		a.Content = in.Content
	}
	if a.Check() != nil {
		return p.AnswerElicitation{Call: b.Call, Number: b.Number, Action: p.ElicitationCancel}, false
	}
	return a, true
}

// bare is an id as text.
func bare(id json.RawMessage) string {
	var s string
	if json.Unmarshal(id, &s) == nil {
		return s
	}
	return string(id)
}
