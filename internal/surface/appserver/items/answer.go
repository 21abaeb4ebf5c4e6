package items

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// amendment is the decision that allows commands which begin like the one that is asked about, for good.
const amendment = "acceptWithExecpolicyAmendment"

// WithOffer adds to a request for the approval of a command what the client can allow for good. A command that names no
// directory runs in cwd.
func (n Note) WithOffer(cwd string) (Note, *project.Permission) {
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

// An Answer is what a client's answer asks for.
type Answer struct {
	Op      p.Op
	Allow   *project.Permission // what is allowed for good; nil if nothing
	Problem string              // for the client: what of its answer could not be done
}

// Answer reads a client's answer to what it was asked. offer is what it can allow for good, nil if nothing. An error, and what cannot
// be read, is a no.
func (a Asked) Answer(offer *project.Permission, result json.RawMessage, err error) Answer {
	no := p.Approve{Call: a.Call, Decision: p.Denied}
	switch {
	case a.Elicitation != 0:
		return Answer{Op: a.elicited(result, err)}
	case err != nil:
		no.Message = "the client could not answer"
		return Answer{Op: no}
	}
	name, value := decision(result)
	if name == amendment && offer != nil && slices.Equal(value.Prefix, offer.Prefix) {
		return Answer{Op: p.Approve{Call: a.Call, Decision: p.Approved}, Allow: offer}
	}
	if d, ok := decided[name]; ok {
		return Answer{Op: p.Approve{Call: a.Call, Decision: d}}
	}
	no.Message = "the client's answer could not be read"
	return Answer{Op: no, Problem: fmt.Sprintf("the decision %q was not offered, so the answer is no: use one of availableDecisions", name)}
}

// elicited is an answer to a question of an MCP server. What cannot be read cancels it.
func (a Asked) elicited(result json.RawMessage, err error) p.AnswerElicitation {
	cancel := p.AnswerElicitation{Call: a.Call, Number: a.Elicitation, Action: p.ElicitationCancel}
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

// decided are the decisions of clients, but for an amendment.
var decided = map[string]p.Decision{
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
