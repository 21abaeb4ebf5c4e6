package mcpserver

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

type listParams struct {
	PageSize int    `json:"pageSize,omitempty"`
	Cursor   string `json:"cursor,omitempty"`
}

type listedConversation struct {
	ConversationID p.ConversationID `json:"conversationId"`
	Path           string           `json:"path"`
	Preview        string           `json:"preview"`
	Timestamp      time.Time        `json:"timestamp"`
}

type listResult struct {
	Items []listedConversation `json:"items"`
	Next  string               `json:"nextCursor,omitempty"`
}

func (s *Server) listConversations(ctx context.Context, _ *jsonrpc.Request, in listParams) (listResult, error) {
	page, err := s.o.Engine.List(ctx, engine.ListOptions{Limit: in.PageSize, Cursor: in.Cursor})
	if err != nil {
		return listResult{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "%v", err)
	}
	res := listResult{Items: []listedConversation{}, Next: page.Next}
	for _, it := range page.Items {
		res.Items = append(res.Items, listedConversation{it.ID, it.Path, it.Title, it.Created})
	}
	return res, nil
}

type resumeParams struct {
	Path           string               `json:"path,omitempty"`
	ConversationID string               `json:"conversationId,omitempty"`
	Overrides      *app.SettingsRequest `json:"overrides,omitempty"`
}

// resumeConversation opens a conversation by its file or its id, and returns what was said in it.
func (s *Server) resumeConversation(ctx context.Context, _ *jsonrpc.Request, in resumeParams) (conversationResult, error) {
	name := in.ConversationID
	if in.Path != "" {
		it, err := s.byPath(ctx, in.Path)
		if err != nil {
			return conversationResult{}, err
		}
		name = string(it.ID)
	}
	life := context.WithoutCancel(ctx)
	c, snap, err := s.lookUp(life, name)
	if err != nil {
		return conversationResult{}, err
	}
	settings, err := s.override(life, c, snap.Settings, in.Overrides)
	if err != nil {
		return conversationResult{}, err
	}
	initial, err := s.said(ctx, c.id, snap.Last)
	if err != nil {
		return conversationResult{}, err
	}
	if err := s.conn.Notify(ctx, "codex/event", eventParams{Msg: event.Configured(c.id, settings.Model)}); err != nil {
		return conversationResult{}, err
	}
	return conversationResult{c.id, settings.Model, initial, returnedItems(snap.Returned)}, nil
}

// byPath finds the conversation that is kept in a file.
func (s *Server) byPath(ctx context.Context, path string) (engine.Summary, error) {
	path = filepath.Clean(path)
	for o := (engine.ListOptions{Limit: 100}); ; {
		page, err := s.o.Engine.List(ctx, o)
		if err != nil {
			return engine.Summary{}, err
		}
		for _, it := range page.Items {
			if it.Path != "" && filepath.Clean(it.Path) == path {
				return it, nil
			}
		}
		if o.Cursor = page.Next; o.Cursor == "" {
			return engine.Summary{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "no conversation is kept in %s", path)
		}
	}
}

// override gives a conversation the settings that a client names, and returns them.
func (s *Server) override(ctx context.Context, c *conversation, now p.Settings, request *app.SettingsRequest) (p.Settings, error) {
	if request == nil {
		return now, nil
	}
	over, err := s.change(ctx, now, *request)
	if err != nil || over == nil {
		return now, err
	}
	_, err = s.o.Engine.Submit(ctx, c.id, p.Configure{Overrides: *over})
	return over.Apply(now), err
}

// said is what was said in a conversation up to an event, and not reverted.
func (s *Server) said(ctx context.Context, id p.ConversationID, upTo p.Seq) ([]event.Msg, error) {
	var list []event.Msg
	var turns []p.TurnID // of each
	add := func(turn p.TurnID, m event.Msg) { list, turns = append(list, m), append(turns, turn) }
	for e, err := range s.o.Engine.Subscribe(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case *p.UserMessage:
			add(e.Turn, event.Msg{"type": "user_message", "message": p.PlainText(b.Content), "kind": "plain"})
		case *p.AssistantMessage:
			add(e.Turn, event.Msg{"type": "agent_message", "message": b.Text})
		case *p.Reverted:
			for len(turns) > 0 && turns[len(turns)-1] >= b.Before {
				list, turns = list[:len(turns)-1], turns[:len(turns)-1]
			}
		}
		if e.Seq >= upTo {
			break
		}
	}
	return list, nil
}

type archiveParams struct {
	ConversationID string `json:"conversationId"`
	RolloutPath    string `json:"rolloutPath,omitempty"`
}

// archiveConversation puts a conversation aside. A file that is named must be its own.
func (s *Server) archiveConversation(ctx context.Context, _ *jsonrpc.Request, in archiveParams) (empty, error) {
	id, err := p.ParseConversationID(in.ConversationID)
	if err != nil {
		return empty{}, requestError(err.Error())
	}
	if in.RolloutPath != "" {
		it, err := s.byPath(ctx, in.RolloutPath)
		if err != nil {
			return empty{}, err
		}
		if it.ID != id {
			return empty{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "%s is kept elsewhere", id)
		}
	}
	life := context.WithoutCancel(ctx)
	var turn p.TurnID // that archiving ends
	if snap, err := s.o.Engine.Resume(life, id); err == nil && snap.Active {
		turn = snap.Turn
	}
	// Before it is closed: a follower that finds it closed, and known, opens it again.
	c, ok := s.known.remove(id)
	err = s.o.Engine.Archive(life, id)
	if errors.Is(err, engine.ErrNotFound) {
		err = requestError((&unknownError{id}).Error())
	}
	if ok {
		if err == nil { // the answer does not overtake the end
			c.group.Ended(life, turn)
		}
		c.use() // so that its followers see that it is gone
	}
	return empty{}, err
}
