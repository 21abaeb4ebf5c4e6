package conversation

import (
	p "github.com/fermata-agent/fermata/protocol"
)

// A TurnSummary is what is told outside of a turn that has ended.
type TurnSummary struct {
	Conversation p.ConversationID
	Turn         p.TurnID
	Cwd          string
	Reason       p.EndReason
	Error        *p.Error
	Inputs       []string // what the user said
	Last         string   // the last thing the model said, which may be cut; "" if nothing

	quiet bool // so far it is only a command of the user's own
}

// foldSummary keeps what the summary of the running turn needs.
func (o *owner) foldSummary(e p.Event) {
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		o.summary = TurnSummary{Turn: e.Turn, quiet: b.Shell}
	case *p.ModelRequested:
		o.summary.quiet = false
	case *p.UserMessage:
		o.summary.Inputs = append(o.summary.Inputs, p.PlainText(b.Content))
	case *p.AssistantMessage:
		o.summary.Last = b.Text
	case *p.TurnEnded:
		o.summary.Reason, o.summary.Error = b.Reason, b.Error
	}
}

// notify tells the outside that a turn has ended; not of a command that the user
// ran, who looks on.
func (o *owner) notify() {
	if o.cfg.Notify == nil || o.summary.quiet {
		return
	}
	s := o.summary
	s.Conversation, s.Cwd = o.id, o.now.Cwd
	o.cfg.Notify(s)
}
