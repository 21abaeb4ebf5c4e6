package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// A desk asks the client for the approvals of one conversation. However many followers the client
// has, each approval is one open question: put through a call, else the stream, else a
// listener. The engine decides which answer counts.
type desk struct {
	s  *Server
	id p.ConversationID

	mu   sync.Mutex
	ways []*way                 // best first; guarded by mu
	open map[questionID]*asking // guarded by mu
}

// A way is how the client can be asked while a follower is there.
type way struct {
	rank rank
	life context.Context                            // for the answer
	ask  func(question) (method string, params any) // no method: the client cannot be asked in this way
}

// A rank says which way is preferred: the lower.
type rank int

const (
	byCall rank = iota
	byStream
	byListener
)

// An asking is an approval that is open.
type asking struct {
	question
	way *way                // by which it was put; nil: by none
	put []*jsonrpc.Question // the last is the one that is open, if way is set
}

// Why a question is withdrawn, for the client.
const (
	withdrawnResolved = "the approval is resolved"
	withdrawnLeft     = "no client follows the conversation"
)

func newDesk(s *Server, id p.ConversationID) *desk {
	return &desk{s: s, id: id, open: map[questionID]*asking{}}
}

// enter adds a way of asking.
func (d *desk) enter(w *way) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.ways, w) {
		return
	}
	d.ways = append(d.ways, w)
	slices.SortStableFunc(d.ways, func(a, b *way) int { return cmp.Compare(a.rank, b.rank) })
}

// leave takes a way out. What was asked in it is withdrawn and asked in the next one; if there is
// none the approvals stay open for whoever comes.
func (d *desk) leave(w *way) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.ways, w)
	if i < 0 {
		return
	}
	d.ways = slices.Delete(d.ways, i, i+1)
	for _, a := range d.open {
		if a.way == w {
			a.put[len(a.put)-1].Withdraw(withdrawnLeft)
			d.place(a)
		}
	}
	if len(d.ways) == 0 {
		clear(d.open)
	}
}

// ask puts a question, unless it is put already.
func (d *desk) ask(q question) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[q.id()] != nil {
		return
	}
	a := &asking{question: q}
	d.open[q.id()] = a
	d.place(a)
}

// place puts a question in the best way there is. A client that follows and can be asked in no way
// means no. mu is held.
func (d *desk) place(a *asking) {
	a.way = nil
	for _, w := range d.ways {
		method, params := w.ask(a.question)
		if method == "" {
			continue
		}
		put, err := d.s.conn.Ask(method, params, func(reply json.RawMessage, err error) { d.answer(w, a, reply, err) })
		if err != nil {
			return // the client has gone: it stays open
		}
		a.way, a.put = w, append(a.put, put)
		return
	}
	if len(d.ways) > 0 && !d.s.conn.Ended() {
		life := d.ways[0].life
		d.s.conn.Go(func() {
			_, _ = d.s.o.Engine.Submit(life, d.id, a.refusal())
		})
	}
}

// answer takes the client's answer. One that was sent when the question had been
// withdrawn counts if it is an answer.
func (d *desk) answer(w *way, a *asking, reply json.RawMessage, err error) {
	if errors.Is(err, jsonrpc.ErrClosed) {
		return
	}
	op, clear := a.reply(reply, err)
	d.mu.Lock()
	withdrawn := d.open[a.id()] != a || a.way != w
	d.mu.Unlock()
	if withdrawn && !clear {
		return
	}
	if !clear && err == nil {
		d.s.remark(w.life, []string{"an answer to " + a.about() + " could not be read, so it is no: " + shortened(reply)})
	}
	_, _ = d.s.o.Engine.Submit(w.life, d.id, op) // another client may have answered first
}

// reply is what an answer asks for, and whether it is clear that it does.
func (q question) reply(reply json.RawMessage, err error) (p.Op, bool) {
	if q.elicited != nil {
		return answerOf(q.elicited, reply)
	}
	decision, clear := decisionOf(reply)
	op := p.Approve{Call: q.Call, Decision: decision}
	switch {
	case clear:
	case err != nil:
		op.Message = "the client could not answer"
	default:
		op.Message = "the client's answer could not be read"
	}
	return op, clear
}

// about names the question for people.
func (q question) about() string {
	if q.elicited != nil {
		return "a question of the MCP server " + q.elicited.Server
	}
	return "an approval"
}

// shownReply is how much of an answer is shown that cannot be read.
const shownReply = 200

func shortened(reply json.RawMessage) string {
	if len(reply) > shownReply {
		return strings.ToValidUTF8(string(reply[:shownReply]), "") + "…"
	}
	return string(reply)
}

// refusal is the answer when the client cannot be asked.
func (q question) refusal() p.Op {
	if q.elicited != nil {
		return p.AnswerElicitation{Call: q.Call, Number: q.elicited.Number, Action: p.ElicitationDecline}
	}
	return p.Approve{Call: q.Call, Decision: p.Denied, Message: "there is no interactive client"}
}

// resolved withdraws a question that is answered.
func (d *desk) resolved(id questionID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.open[id]
	if a == nil {
		return
	}
	delete(d.open, id)
	for i, put := range a.put {
		if a.way != nil && i == len(a.put)-1 {
			put.Withdraw(withdrawnResolved)
		}
		put.Forget()
	}
}

// ended withdraws the questions of a turn that has ended.
func (d *desk) ended(turn p.TurnID) {
	d.mu.Lock()
	var over []questionID
	for id, a := range d.open {
		if a.turn == turn {
			over = append(over, id)
		}
	}
	d.mu.Unlock()
	for _, id := range over {
		d.resolved(id)
	}
}
