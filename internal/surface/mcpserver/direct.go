package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// directMethods are the requests that clients make without MCP.
func (s *Server) directMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		handle(s, "newConversation", s.newConversation),
		handle(s, "sendUserMessage", s.sendUserMessage).InLane(directLane),
		handle(s, "sendUserTurn", s.sendUserTurn).InLane(directLane),
		handle(s, "interruptConversation", s.interruptConversation).InLane(directLane).Arriving(s.interruptArrives),
		handle(s, "addConversationListener", s.addListener).InLane(directLane),
		handle(s, "removeConversationListener", s.removeListener),
		handle(s, "listConversations", s.listConversations),
		handle(s, "resumeConversation", s.resumeConversation),
		handle(s, "archiveConversation", s.archiveConversation).InLane(directLane),
		handle(s, "getUserAgent", s.userAgent),
		handle(s, "loginChatGpt", noLogin),
		handle(s, "cancelLoginChatGpt", noLogin),
		handle(s, "logoutChatGpt", noLogin),
	}
}

// handle is jsonrpc.Handle, with a warning of each unknown member.
func handle[P, R any](s *Server, name string, fn func(context.Context, *jsonrpc.Request, P) (R, error)) jsonrpc.Method {
	takes := reflect.TypeFor[P]()
	return jsonrpc.Handle(name, func(ctx context.Context, r *jsonrpc.Request, in P) (R, error) {
		s.remarkUnknown(ctx, name, jsonrpc.Unknown(r.Params, takes))
		return fn(ctx, r, in)
	})
}

type conversationResult struct {
	ConversationID p.ConversationID `json:"conversationId"`
	Model          string           `json:"model"`
	Initial        []event.Msg      `json:"initialMessages,omitempty"`
	Returned       []returnedItem   `json:"returned,omitempty"` // messages that were not delivered, until a client sends, takes or drops them
}

// A returnedItem is a message that was not delivered.
type returnedItem struct {
	ID   p.InputID `json:"id"` // for the returned of sendUserMessage and sendUserTurn
	Text string    `json:"text"`
}

func returnedItems(list []p.ReturnedInput) (out []returnedItem) {
	for _, in := range list {
		out = append(out, returnedItem{in.Input, p.Written(in.Content)})
	}
	return out
}

func (s *Server) newConversation(ctx context.Context, _ *jsonrpc.Request, in app.SettingsRequest) (conversationResult, error) {
	c, settings, err := s.create(context.WithoutCancel(ctx), in)
	if err != nil {
		return conversationResult{}, err
	}
	return conversationResult{ConversationID: c.id, Model: settings.Model}, nil
}

type messageParams struct {
	ConversationID string      `json:"conversationId"`
	Items          []item      `json:"items"`
	Returned       []p.InputID `json:"returned,omitempty" doc:"ids of returned messages (see resumeConversation) that this one delivers; without items they are sent as they were"`
	WhenBusy       p.WhenBusy  `json:"whenBusy,omitempty" enum:"steer,queue,replace" doc:"what becomes of it while a turn runs, also one that is waiting for approval: steer (join the turn with its next model request), queue (start the next turn) or replace (interrupt the turn); default queue"`
}

func (s *Server) sendUserMessage(ctx context.Context, _ *jsonrpc.Request, in messageParams) (empty, error) {
	return s.submitTurn(ctx, in, nil)
}

type turnParams struct {
	messageParams
	Cwd            string           `json:"cwd"`
	ApprovalPolicy p.ApprovalPolicy `json:"approvalPolicy" enum:"untrusted,on-failure,on-request,never"`
	SandboxPolicy  p.SandboxPolicy  `json:"sandboxPolicy"`
	Model          string           `json:"model"`
	Effort         *string          `json:"effort,omitempty"`
	Summary        *string          `json:"summary,omitempty"`
}

func (s *Server) sendUserTurn(ctx context.Context, _ *jsonrpc.Request, in turnParams) (empty, error) {
	if err := checkSandbox(&in.SandboxPolicy); err != nil {
		return empty{}, err
	}
	return s.submitTurn(ctx, in.messageParams, &p.Overrides{
		Cwd: &in.Cwd, Approval: &in.ApprovalPolicy, Sandbox: &in.SandboxPolicy, Model: &in.Model, Effort: in.Effort, Summary: in.Summary,
	})
}

func (s *Server) submitTurn(ctx context.Context, in messageParams, over *p.Overrides) (empty, error) {
	life := context.WithoutCancel(ctx)
	c, snap, err := s.lookUp(life, in.ConversationID)
	if err != nil {
		return empty{}, err
	}
	content, err := contents(in.Items, snap.Settings.Cwd)
	if err != nil {
		return empty{}, jsonrpc.Errorf(jsonrpc.CodeParams, "%v", err)
	}
	if err := s.complete(over, snap.Settings); err != nil {
		return empty{}, err
	}
	if in.WhenBusy == "" {
		in.WhenBusy = p.Queue
	}
	_, err = s.o.Engine.Submit(life, c.id, p.UserTurn{Content: content, WhenBusy: in.WhenBusy, Overrides: over, Returned: in.Returned})
	if errors.Is(err, engine.ErrEmpty) || errors.Is(err, engine.ErrNotReturned) || errors.Is(err, engine.ErrSteerSettings) {
		err = jsonrpc.Errorf(jsonrpc.CodeParams, "%v", err)
	}
	return empty{}, err
}

// complete makes what a turn changes what a request would: a directory is relative to where the server
// runs, and nothing stays as it is.
func (s *Server) complete(over *p.Overrides, now p.Settings) error {
	if over == nil {
		return nil
	}
	if *over.Model == "" {
		over.Model = nil
	}
	if filepath.IsAbs(*over.Cwd) {
		return nil
	}
	changed, _, err := s.o.Change(now, app.SettingsRequest{Cwd: *over.Cwd})
	if err != nil {
		return requestError(err.Error())
	}
	over.Cwd = changed.Cwd
	return nil
}

type conversationName struct {
	ConversationID string `json:"conversationId"`
}

type interruptResult struct {
	AbortReason *string `json:"abortReason"` // nil: there was nothing to stop
}

// interruptArrives registers an interrupt when it is read.
func (s *Server) interruptArrives(params json.RawMessage) (any, func()) {
	id, err := p.ParseConversationID(directLane(params))
	if err != nil {
		return nil, func() {} // its handler refuses it
	}
	i := s.interrupts.Arrive(id)
	return i, i.Over
}

// interruptConversation is answered when the turn has ended and everybody who follows it for this
// client has been sent it. So is one that comes when another one has stopped the turn already, and is not answered yet.
func (s *Server) interruptConversation(ctx context.Context, r *jsonrpc.Request, in conversationName) (interruptResult, error) {
	ctx = r.UntilEnd(ctx)
	life := context.WithoutCancel(ctx)
	id, err := p.ParseConversationID(in.ConversationID)
	if err != nil {
		return interruptResult{}, requestError(err.Error())
	}
	group := follow.New(s.o.Engine, id) // this client follows nothing of it, unless it is known
	if c, ok := s.known.get(id); ok {
		group = c.group
	}
	end, err := r.Arrived.(*follow.Interrupt).Stop(ctx, life, group, 0, r.Release)
	switch {
	case errors.Is(err, engine.ErrNothingToStop):
		return interruptResult{}, nil
	case errors.Is(err, engine.ErrNotFound):
		return interruptResult{}, &unknownError{id}
	case err != nil:
		return interruptResult{}, err
	}
	if end.Reason == p.Completed || end.Reason == p.Failed {
		return interruptResult{}, nil // it was over before
	}
	return interruptResult{new(event.AbortReason(end.Reason))}, nil
}

type subscription struct {
	ID string `json:"subscriptionId"`
}

// addListener answers, then sends events until the listener is removed. Its handler runs
// that long; a request that was answered cannot be cancelled any more.
func (s *Server) addListener(ctx context.Context, r *jsonrpc.Request, in conversationName) (subscription, error) {
	life, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	c, snap, err := s.lookUp(life, in.ConversationID)
	if err != nil {
		return subscription{}, err
	}
	id := string(p.NewConversationID(time.Now()))
	l := s.newListener(life, c, snap)
	defer l.cancel()
	l.join(l.ctx)
	s.listeners.put(id, l)
	defer s.listeners.remove(id)
	r.Reply(subscription{id}, nil)
	r.Release()
	stop := context.AfterFunc(r.UntilEnd(life), func() {
		l.finish(life)
		l.cancel()
	})
	defer stop()
	l.run(l.ctx)
	return subscription{}, nil
}

func (s *Server) removeListener(_ context.Context, _ *jsonrpc.Request, in subscription) (empty, error) {
	l, ok := s.listeners.remove(in.ID)
	if !ok {
		return empty{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "unknown subscription: %s", in.ID)
	}
	l.cancel()
	<-l.done
	return empty{}, nil
}

// A directAsk is an approval in the form of the direct requests.
type directAsk struct {
	ConversationID p.ConversationID `json:"conversation_id"`
	CallID         string           `json:"call_id"`
	Command        []string         `json:"command,omitempty"`
	Cwd            string           `json:"cwd,omitempty"`
	Changes        json.RawMessage  `json:"file_changes,omitempty"`
	Reason         string           `json:"reason,omitempty"`
}

// directQuestion asks in the words of direct clients, who have none of their own for what a
// server wants to know.
func (s *Server) directQuestion(id p.ConversationID, q question) (string, any) {
	if q.elicited != nil {
		return s.elicitation(q, nil)
	}
	return directApproval(id, q)
}

func directApproval(id p.ConversationID, q question) (string, any) {
	ask := directAsk{ConversationID: id, CallID: q.wireID, Reason: q.Reason}
	if q.Kind == p.ApprovePatch {
		ask.Changes = event.Changes(q.Detail)
		return "applyPatchApproval", ask
	}
	ask.Command, ask.Cwd = q.Command, q.Cwd
	return "execCommandApproval", ask
}

type userAgentResult struct {
	UserAgent string `json:"userAgent"`
}

func (s *Server) userAgent(context.Context, *jsonrpc.Request, empty) (userAgentResult, error) {
	return userAgentResult{"fermata/" + s.o.Version}, nil
}

func noLogin(context.Context, *jsonrpc.Request, empty) (empty, error) {
	return empty{}, requestError("fermata has no hosted login: set the key of a model provider in the environment")
}
