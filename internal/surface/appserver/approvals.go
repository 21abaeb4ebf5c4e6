package appserver

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// amendment is the decision that allows commands which begin like the one that is asked about, for good.
const amendment = "acceptWithExecpolicyAmendment"

// withOffer adds to a request for the approval of a command what the client can allow for good. A command that names no
// directory runs in cwd.
func withOffer(n items.Note, cwd string) (items.Note, *project.Permission) {
	params, ok := n.Params.(wire.CommandApproval)
	if !ok || n.Approval == nil || n.Approval.Kind != p.ApproveCommand {
		return n, nil
	}
	if n.Approval.Cwd != "" {
		cwd = n.Approval.Cwd
	}
	offer, ok := project.Offer(n.Approval.Command, cwd)
	if !ok {
		return n, nil
	}
	params.ProposedAmendment = offer.Prefix
	decision := map[string]wire.Amendment{amendment: {Prefix: offer.Prefix}}
	params.AvailableDecisions = slices.Insert(slices.Clone(params.AvailableDecisions), 2, any(decision))
	n.Params = params
	return n, &offer
}

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
	sub := c.follows(about.ID)
	if sub == nil {
		return
	}
	offer, open := sub.isOpen(name)
	if !open {
		return // it was not asked
	}
	if _, err = c.s.o.Engine.Submit(c.life, about.ID, c.answerTo(about, offer, result, err)); err != nil { // somebody else may have been quicker
		c.s.o.Log.Debug("answer", "error", err)
	}
}

// answerTo is a client's answer; an error is a no. What cannot be done as the client says, it is warned of.
func (c *conn) answerTo(about items.Asked, offer *project.Permission, result json.RawMessage, err error) p.Op {
	switch {
	case about.Elicitation != 0:
		return answerOf(about, result, err)
	case err != nil:
		return p.Approve{Call: about.Call, Decision: p.Denied, Message: "the client could not answer"}
	}
	name, value := decision(result)
	if name == amendment && offer != nil && slices.Equal(value.Prefix, offer.Prefix) {
		if err := c.s.o.Allow(*offer); err != nil {
			c.remark(about.ID, []string{fmt.Sprintf("allowed this time only, since `%s` could not be saved: %v", offer, err)})
		}
		return p.Approve{Call: about.Call, Decision: p.Approved}
	}
	if d, ok := decisions[name]; ok {
		return p.Approve{Call: about.Call, Decision: d}
	}
	c.remark(about.ID, []string{fmt.Sprintf("the decision %q was not offered, so the answer is no: use one of availableDecisions", name)})
	return p.Approve{Call: about.Call, Decision: p.Denied, Message: "the client's answer could not be read"}
}

// answerOf is a client's answer to a question of an MCP server. What cannot be read cancels it.
func answerOf(about items.Asked, result json.RawMessage, err error) p.AnswerElicitation {
	cancel := p.AnswerElicitation{Call: about.Call, Number: about.Elicitation, Action: p.ElicitationCancel}
	var in wire.Decision
	if err != nil || json.Unmarshal(result, &in) != nil {
		return cancel
	}
	answer := cancel
	switch p.ElicitationAction(in.Action) {
	case p.ElicitationAccept:
		if answer.Action = p.ElicitationAccept; string(in.Content) != "null" {
			answer.Content = in.Content
		}
		if answer.Check() != nil {
			return cancel
		}
	case p.ElicitationDecline:
		answer.Action = p.ElicitationDecline
	}
	return answer
}

// decisions are the answers that clients give, but for an amendment.
var decisions = map[string]p.Decision{
	"accept": p.Approved, "acceptForSession": p.ApprovedForSession, "decline": p.Denied, "cancel": p.Abort,
}

// decision reads an answer to an approval, or to an elicitation that stands for one: its name, and what comes with it.
func decision(result json.RawMessage) (name string, value wire.Amendment) {
	var in wire.Decision
	if json.Unmarshal(result, &in) != nil {
		return "", value
	}
	var object map[string]json.RawMessage
	switch {
	case len(in.Decision) == 0:
		return in.Action, value
	case json.Unmarshal(in.Decision, &name) == nil:
		return name, value
	case json.Unmarshal(in.Decision, &object) == nil && len(object) == 1:
		for key, raw := range object {
			if name = key; json.Unmarshal(raw, &value) != nil {
				return name, wire.Amendment{}
			}
		}
	}
	return name, value
}
