package acp

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/acp/updates"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

func settingsFor(cwd string) app.SettingsRequest {
	return app.SettingsRequest{Cwd: cwd, Interactive: true}
}

// check refuses what a session cannot have. It returns the MCP servers that the client names.
func (c *conn) check(in wire.NewSession) (map[string]config.MCPServer, error) {
	if len(in.Directories) > 0 {
		return nil, badParams("additionalDirectories are not offered: see agentCapabilities")
	}
	if err := directory(in.Cwd); err != nil {
		return nil, err
	}
	return definitions(in.MCPServers)
}

func (c *conn) newSession(ctx context.Context, r *jsonrpc.Request, in wire.NewSession) (wire.NewSessionResult, error) {
	none := wire.NewSessionResult{}
	servers, err := c.check(in)
	if err != nil {
		return none, err
	}
	settings, remarks, err := c.s.o.Settings(settingsFor(in.Cwd))
	if err != nil {
		return none, refusal(err)
	}
	id, err := c.s.o.Engine.Create(ctx, settings)
	if err != nil {
		return none, failed(err, id)
	}
	s := c.session(id)
	remarks = append(remarks, s.bring(in, servers)...)
	err = c.open(ctx, s, false, func(f *updates.Fold) {
		r.Reply(wire.NewSessionResult{SessionID: string(id), State: s.state(ctx, f.Settings)}, nil)
		s.greet(remarks)
	})
	return none, failed(err, id)
}

// loadSession replays a session, and is answered when everything that there was has been sent.
func (c *conn) loadSession(ctx context.Context, r *jsonrpc.Request, in wire.OpenSession) (wire.State, error) {
	return c.openSession(ctx, r, in, false)
}

// resumeSession opens a session whose past the client has.
func (c *conn) resumeSession(ctx context.Context, r *jsonrpc.Request, in wire.OpenSession) (wire.State, error) {
	return c.openSession(ctx, r, in, true)
}

func (c *conn) openSession(ctx context.Context, r *jsonrpc.Request, in wire.OpenSession, skip bool) (wire.State, error) {
	none := wire.State{}
	servers, err := c.check(in.NewSession)
	if err != nil {
		return none, err
	}
	id, err := p.ParseConversationID(in.SessionID)
	if err != nil {
		return none, notFound(in.SessionID)
	}
	snap, err := c.s.o.Engine.Resume(ctx, id)
	if err != nil {
		return none, failed(err, id)
	}
	remarks := snap.Recovered
	if over, more, err := c.s.o.Change(snap.Settings, settingsFor(in.Cwd)); err != nil {
		return none, refusal(err)
	} else if over.Cwd != nil && *over.Cwd != snap.Settings.Cwd {
		remarks = append(remarks, more...)
		if _, err := c.s.o.Engine.Submit(ctx, id, p.Configure{Overrides: p.Overrides{Cwd: over.Cwd}}); err != nil {
			return none, failed(err, id)
		}
	}
	s := c.session(id)
	remarks = append(remarks, s.bring(in.NewSession, servers)...)
	err = c.open(ctx, s, skip, func(f *updates.Fold) {
		r.Reply(s.state(ctx, f.Settings), nil)
		s.greet(remarks)
	})
	return none, failed(err, id)
}

// greet sends what a client needs that has just opened a session. Some clients hang if they get commands before the answer.
func (s *session) greet(remarks []string) {
	s.c.update(s.c.life, s.id, commandList(s.c.s.o.Local.Prompts(s.cwd)))
	for _, text := range remarks {
		s.c.remark(s.c.life, s.id, text)
	}
}

// remark sends a remark for people.
func (c *conn) remark(ctx context.Context, id p.ConversationID, text string) {
	if c.client.Load().Session.Notices != nil {
		c.update(ctx, id, wire.Notice{Update: "notice", Severity: "warning", Title: text})
		return
	}
	c.update(ctx, id, wire.Chunk{Update: wire.ThoughtChunk, Content: wire.Text(text + "\n")})
}

// listLimit is how many sessions a page of a list has.
const listLimit = 50

func (c *conn) listSessions(ctx context.Context, _ *jsonrpc.Request, in wire.List) (wire.Sessions, error) {
	out := wire.Sessions{Sessions: []wire.SessionInfo{}}
	if in.Cwd != "" {
		if err := absolute(in.Cwd); err != nil {
			return out, err
		}
		if real, err := filepath.EvalSymlinks(in.Cwd); err == nil { // conversations know their directory by that
			in.Cwd = real
		}
	}
	page, err := c.s.o.Engine.List(ctx, engine.ListOptions{Limit: listLimit, Cursor: in.Cursor, Cwd: in.Cwd})
	if err != nil && in.Cursor != "" {
		return out, badParams("cursor: %v", err)
	}
	if err != nil {
		return out, err
	}
	for _, s := range page.Items {
		out.Sessions = append(out.Sessions, wire.SessionInfo{
			SessionID: string(s.ID), Cwd: s.Cwd, Title: s.Title, UpdatedAt: s.Updated.UTC().Format(time.RFC3339),
		})
	}
	out.NextCursor = page.Next
	return out, nil
}

// closeSession cancels what runs and lets go of everything that belongs to the session. It stays listed.
func (c *conn) closeSession(ctx context.Context, _ *jsonrpc.Request, in wire.Session) (wire.None, error) {
	s, err := c.find(in.SessionID)
	if err != nil {
		return wire.None{}, err
	}
	if err := c.interrupt(ctx, s.id); err != nil {
		return wire.None{}, failed(err, s.id)
	}
	s.awaitAnswers(ctx)
	c.leave(ctx, s)
	return wire.None{}, nil
}

// leave lets go of a session. If nothing outlives the connection, its background commands end as well.
func (c *conn) leave(ctx context.Context, s *session) {
	s.stop()
	s.forget()
	s.fail(errors.New("the session was closed"))
	s.letGo()
	if !c.s.o.Detached {
		if err := c.s.o.Engine.Release(ctx, s.id); err != nil {
			c.s.o.Log.Warn("close session", "error", err)
		}
	}
}

func (c *conn) deleteSession(ctx context.Context, _ *jsonrpc.Request, in wire.Session) (wire.None, error) {
	id, err := p.ParseConversationID(in.SessionID)
	if err != nil {
		return wire.None{}, nil // there is none, as the client wants it
	}
	if s, err := c.find(in.SessionID); err == nil {
		if err := c.interrupt(ctx, s.id); err != nil {
			return wire.None{}, failed(err, id)
		}
		s.awaitAnswers(ctx)
		c.leave(ctx, s)
	}
	if err := c.s.o.Engine.Delete(ctx, id); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return wire.None{}, failed(err, id)
	}
	return wire.None{}, nil
}
