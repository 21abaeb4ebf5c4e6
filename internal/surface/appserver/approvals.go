package appserver

import (
	"encoding/json"

	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// reply takes a client's answer to an approval or a question. Nobody keeps a list of what was asked: the id says what it is about, and
// the engine takes the first answer. Others, and answers to what is no longer open, are ignored.
func (c *conn) reply(id, result json.RawMessage, err error) {
	var name string
	if json.Unmarshal(id, &name) != nil {
		return
	}
	about, ok := items.ParseAsk(name)
	if !ok {
		return
	}
	if sub := c.follows(about.ID); sub == nil || !sub.isOpen(name) {
		return // it was not asked
	}
	_, err = c.s.o.Engine.Submit(c.life, about.ID, answerTo(about, result, err)) // somebody else may have been quicker
	if err != nil {
		c.s.o.Log.Debug("answer", "error", err)
	}
}

// answerTo is a client's answer; an error is a no.
func answerTo(about items.Asked, result json.RawMessage, err error) p.Op {
	if about.Elicitation == 0 {
		if err != nil {
			return p.Approve{Call: about.Call, Decision: p.Denied, Message: "the client could not answer"}
		}
		return decide(about.Call, result)
	}
	answer := p.AnswerElicitation{Call: about.Call, Number: about.Elicitation, Action: p.ElicitationCancel}
	var in wire.Decision
	if err != nil || json.Unmarshal(result, &in) != nil {
		return answer
	}
	switch p.ElicitationAction(in.Action) {
	case p.ElicitationAccept:
		if answer.Action = p.ElicitationAccept; string(in.Content) != "null" {
			answer.Content = in.Content
		}
		if answer.Check() != nil {
			return p.AnswerElicitation{Call: about.Call, Number: about.Elicitation, Action: p.ElicitationCancel}
		}
	case p.ElicitationDecline:
		answer.Action = p.ElicitationDecline
	}
	return answer
}

// decisions are the answers that clients give.
var decisions = map[string]p.Decision{
	"accept": p.Approved, "acceptForSession": p.ApprovedForSession, "decline": p.Denied, "cancel": p.Abort,
	"acceptWithExecpolicyAmendment": p.ApprovedForSession, // never offered; what it means is more
}

// decide reads an answer to an approval or to an elicitation. What cannot be read is a no.
func decide(call p.CallID, result json.RawMessage) p.Approve {
	no := p.Approve{Call: call, Decision: p.Denied, Message: "the client's answer could not be read"}
	var in wire.Decision
	if json.Unmarshal(result, &in) != nil {
		return no
	}
	name := in.Action
	var object map[string]json.RawMessage
	switch {
	case len(in.Decision) == 0:
	case json.Unmarshal(in.Decision, &name) == nil:
	case json.Unmarshal(in.Decision, &object) == nil && len(object) == 1:
		for key := range object {
			name = key
		}
	}
	d, ok := decisions[name]
	if !ok {
		return no
	}
	return p.Approve{Call: call, Decision: d}
}
