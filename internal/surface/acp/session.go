package acp

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/app/clienttools"
	"github.com/fermata-agent/fermata/internal/surface/acp/updates"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// A session is a conversation that the client has opened.
type session struct {
	c  *conn
	id p.ConversationID

	// Of the latest request that opened it, set before the client knows of it.
	cwd        string
	configured p.Settings // what it was opened with

	mu      sync.Mutex
	brings  *clienttools.Set // what its turns are run with beside; guarded by mu
	servers []wire.MCPServer // that the client named for it; guarded by mu
	warned  bool             // that another process does not use them; guarded by mu
	follow  *follower        // that sends the client what happens; guarded by mu
	expects []*expected      // prompts that are not answered; guarded by mu
	last    updates.Ended    // the last turn whose end the client was sent; guarded by mu
}

// An expected is a prompt that is to be answered when its turn has ended.
type expected struct {
	ref  string        // the name of its message; empty if the turn was known from the beginning
	turn p.TurnID      // that it is part of; 0 while it waits; guarded by session.mu
	done chan struct{} // closed when the rest is set

	end      p.TurnEnded
	returned bool  // it was not delivered
	err      error // the conversation can no longer be followed
}

// open follows a conversation from its beginning. When everything that there is has been sent, or left out if skip is set, it calls
// answer, which is to reply, and goes on with what happens. What the client followed before ends there. It returns when answer was called.
func (c *conn) open(ctx context.Context, s *session, skip bool, answer func(*updates.Fold)) error {
	s.stop()
	f := s.newFollower(skip, answer)
	c.rpc.Go(f.run)
	select {
	case err := <-f.begun:
		if err != nil {
			s.fail(err)
			s.letGo()
		}
		return err
	case <-ctx.Done():
		f.stop()
		s.fail(context.Cause(ctx))
		s.letGo()
		return context.Cause(ctx)
	}
}

// session returns what the connection knows of a conversation.
func (c *conn) session(id p.ConversationID) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[id]; s != nil {
		return s
	}
	return &session{c: c, id: id}
}

// opened makes it one of the connection's sessions, with what follows it.
func (s *session) opened(f *follower) {
	s.c.mu.Lock()
	s.c.sessions[s.id] = s
	s.c.mu.Unlock()
	s.mu.Lock()
	s.follow = f
	s.mu.Unlock()
}

// forget takes it from the connection's sessions.
func (s *session) forget() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	delete(s.c.sessions, s.id)
}

// following returns what follows the conversation; nil if nothing does.
func (s *session) following() *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow
}

// stop has nothing more sent of the conversation.
func (s *session) stop() {
	if f := s.following(); f != nil {
		f.stop()
	}
}

// foldOptions are what the client can show.
func (s *session) foldOptions() updates.Options {
	c := s.c
	client := c.client.Load()
	return updates.Options{
		Terminals: client.Meta.TerminalOutput, Notices: client.Session.Notices != nil, Compaction: client.Session.Compaction != nil,
		Own:     func(ref string) bool { return strings.HasPrefix(ref, c.name) },
		Changed: s.changed, Window: c.s.o.Local.ContextWindow, Cost: c.s.o.Local.Cost,
	}
}

// expect registers a prompt by the name of its message, before that is submitted.
func (s *session) expect(ref string) *expected {
	x := &expected{ref: ref, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expects = append(s.expects, x)
	return x
}

// expectTurn registers a prompt by its turn, which may have ended.
func (s *session) expectTurn(turn p.TurnID) *expected {
	x := &expected{turn: turn, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Turn >= turn {
		x.end = s.last.End
		close(x.done)
		return x
	}
	s.expects = append(s.expects, x)
	return x
}

// drop takes back a prompt whose message was refused.
func (s *session) drop(x *expected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expects = slices.DeleteFunc(s.expects, func(other *expected) bool { return other == x })
}

// turnOf returns the turn that a prompt is part of, 0 if it waits.
func (s *session) turnOf(x *expected) p.TurnID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.turn
}

// started reports whether a prompt that is not answered is part of a turn.
func (s *session) started(turn p.TurnID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.expects, func(x *expected) bool { return x.turn == turn })
}

// delivered notes that a message became part of a turn.
func (s *session) delivered(d updates.Delivered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.expects {
		if x.ref != "" && x.ref == d.Ref {
			x.turn = d.Turn
		}
	}
}

// returned notes that a message was not delivered. It is answered with the turn that it was to join, or at once if none runs.
func (s *session) returned(ref string, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.expects {
		if x.ref != "" && x.ref == ref {
			x.returned = true
		}
	}
	if !running {
		s.answer(func(x *expected) bool { return x.returned })
	}
}

// turnEnded answers the prompts that were part of a turn, or were to be. The client was sent everything of it.
func (s *session) turnEnded(e updates.Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = e
	s.answer(func(x *expected) bool {
		if x.turn != 0 && x.turn <= e.Turn {
			x.end = e.End
			return true
		}
		return x.returned
	})
}

// fail answers all prompts: the conversation can no longer be followed.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer(func(x *expected) bool { x.err = err; return true })
}

// answer answers prompts. mu is held.
func (s *session) answer(which func(*expected) bool) {
	s.expects = slices.DeleteFunc(s.expects, func(x *expected) bool {
		if !which(x) {
			return false
		}
		close(x.done)
		return true
	})
}
