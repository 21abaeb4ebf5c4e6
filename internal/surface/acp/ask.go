package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/acp/updates"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// The ids of answers to a request for permission that are no decisions.
const (
	allowPrefix = "allow_prefix" // allow what begins like this one, for good
	denyBecause = "denied_because"
)

// ask asks the user whether a call may run.
func (f *follower) ask(a updates.Ask) {
	offer := f.offer(a.Approval)
	call := a.ToolCall
	if reason := updates.Reason(a.Approval); reason != "" && call.Content != nil {
		block := wire.Text(reason)
		content := append([]wire.CallContent{{Type: "content", Content: &block}}, *call.Content...)
		call.Content = &content
	}
	call.ID = a.Call.String()
	f.put(updates.Resolved{Call: a.Call}, "session/request_permission", wire.RequestPermission{
		SessionID: string(f.s.id), ToolCall: call, Options: f.permissionOptions(offer),
	}, func(result json.RawMessage, err error) { f.s.submitAnswer(a.Call, offer, result, err) })
}

// put asks the client something. The answer comes in another goroutine; what is asked is withdrawn when it is resolved otherwise.
func (f *follower) put(about updates.Resolved, method string, params any, answer func(json.RawMessage, error)) {
	q, err := f.s.c.rpc.Ask(method, params, func(result json.RawMessage, err error) {
		if errors.Is(err, jsonrpc.ErrClosed) {
			return // the client has gone: it stays open
		}
		answer(result, err)
	})
	if err == nil {
		f.questions[about] = q
	}
}

// resolved withdraws what was asked. An answer that comes later is ignored.
func (f *follower) resolved(about updates.Resolved) {
	if q := f.questions[about]; q != nil {
		q.Withdraw("")
		q.Forget()
		delete(f.questions, about)
	}
}

// withdraw withdraws everything that was asked.
func (f *follower) withdraw() {
	for about := range f.questions {
		f.resolved(about)
	}
}

// offer is what the user can allow for good; nil if nothing.
func (f *follower) offer(a *p.ApprovalRequested) *project.Permission {
	if f.s.c.s.o.Allow == nil || a.Kind != p.ApproveCommand {
		return nil
	}
	offer, ok := project.Offer(a.Command, cmp.Or(a.Cwd, f.fold.Settings.Cwd))
	if !ok {
		return nil
	}
	return &offer
}

// permissionOptions are the answers that the user can choose. The first one allows, since some clients take it.
func (f *follower) permissionOptions(offer *project.Permission) []wire.PermissionOption {
	list := []wire.PermissionOption{
		{ID: string(p.Approved), Name: "Allow", Kind: wire.AllowOnce},
		{ID: string(p.ApprovedForSession), Name: "Allow for this session", Kind: wire.AllowAlways},
	}
	if offer != nil {
		list = append(list, wire.PermissionOption{ID: allowPrefix, Name: fmt.Sprintf("Always allow `%s` in this project", offer), Kind: wire.AllowAlways})
	}
	list = append(list, wire.PermissionOption{ID: string(p.Denied), Name: "Deny", Kind: wire.RejectOnce})
	if f.s.c.client.Load().Elicitation.Form != nil {
		list = append(list, wire.PermissionOption{ID: denyBecause, Name: "Deny and say why", Kind: wire.RejectOnce})
	}
	return append(list, wire.PermissionOption{ID: string(p.Abort), Name: "Deny and stop the turn", Kind: wire.RejectOnce})
}

// submitAnswer takes the user's answer. An error, and what cannot be read, is a no; the engine takes the first answer and refuses others.
func (s *session) submitAnswer(call p.CallID, offer *project.Permission, result json.RawMessage, err error) {
	ctx, op := s.c.life, p.Approve{Call: call, Decision: p.Denied}
	var in wire.Permission
	switch {
	case err != nil:
		op.Message = "the client could not answer"
	case json.Unmarshal(result, &in) != nil:
		op.Message = "the client's answer could not be read"
	case in.Outcome.Outcome == wire.Cancelled:
		op.Decision = p.Abort
	case in.Outcome.OptionID == allowPrefix && offer != nil:
		op.Decision = p.Approved
		if err := s.c.s.o.Allow(*offer); err != nil {
			s.c.remark(ctx, s.id, fmt.Sprintf("allowed this time only, since `%s` could not be saved: %v", offer, err))
		}
	case in.Outcome.OptionID == denyBecause:
		op.Message = s.reason(ctx, call)
	default:
		op.Decision, op.Message = decision(in.Outcome.OptionID)
	}
	if _, err := s.run(ctx, op); err != nil { // another client may have been quicker
		s.c.s.o.Log.Debug("answer", "error", err)
	}
}

// decision is what an option that was offered stands for. Any other is a no.
func decision(option string) (d p.Decision, message string) {
	switch d := p.Decision(option); d {
	case p.Approved, p.ApprovedForSession, p.Denied, p.Abort:
		return d, ""
	}
	return p.Denied, "the client's answer was not one of those offered"
}

// reasonForm asks for one line of text.
var reasonForm = json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","title":"Reason"}},"required":["reason"]}`)

// reason asks the user why not. It is empty if there is no answer.
func (s *session) reason(ctx context.Context, call p.CallID) string {
	raw, err := s.c.rpc.Call(ctx, "elicitation/create", wire.Elicit{
		SessionID: string(s.id), ToolCallID: call.String(), Mode: "form", Message: "Why should this not be done?", Schema: reasonForm,
	})
	var in struct {
		Action  string
		Content struct{ Reason string }
	}
	if err != nil || json.Unmarshal(raw, &in) != nil || in.Action != string(p.ElicitationAccept) {
		return ""
	}
	return in.Content.Reason
}

// elicit asks what an MCP server wants to know. A client that cannot ask declines if it started the turn: there may be no other client.
func (f *follower) elicit(q updates.Question) {
	client := f.s.c.client.Load().Elicitation
	params := wire.Elicit{SessionID: string(f.s.id), ToolCallID: q.Call.String(), Mode: "form", Message: q.Server + ": " + q.Message, Schema: q.Schema}
	if len(q.Schema) == 0 {
		params.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	offered := client.Form != nil
	if q.URL != "" {
		offered = client.URL != nil
		params.Mode, params.URL, params.Schema = "url", q.URL, nil
		params.ElicitationID = fmt.Sprintf("%s-%s-%d", f.s.id, q.Call, q.Number)
	}
	about := updates.Resolved{Call: q.Call, Number: q.Number}
	if offered {
		f.put(about, "elicitation/create", params, func(result json.RawMessage, err error) { f.s.elicited(about, result, err) })
		return
	}
	if !f.s.started(q.Call.Turn) {
		return
	}
	f.s.c.rpc.Go(func() { f.s.elicited(about, json.RawMessage(`{"action":"decline"}`), nil) })
}

// elicited takes the user's answer to a question. What cannot be read cancels it.
func (s *session) elicited(about updates.Resolved, result json.RawMessage, err error) {
	answer := p.AnswerElicitation{Call: about.Call, Number: about.Number, Action: p.ElicitationCancel}
	var in wire.Elicited
	if err == nil && json.Unmarshal(result, &in) == nil {
		read := answer
		if read.Action = p.ElicitationAction(in.Action); read.Action == p.ElicitationAccept && string(in.Content) != "null" {
			read.Content = in.Content
		}
		if read.Check() == nil {
			answer = read
		}
	}
	if _, err := s.c.s.o.Engine.Submit(s.c.life, s.id, answer); err != nil { // another client may have been quicker
		s.c.s.o.Log.Debug("answer", "error", err)
	}
}
