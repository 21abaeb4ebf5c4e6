package wire

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// Answer is a sink that notices whether a response says anything.
type Answer struct {
	model.Sink
	said bool
}

// Done implements [model.Sink].
func (a *Answer) Done(index int, item protocol.Body) {
	switch b := item.(type) {
	case *protocol.AssistantMessage:
		a.said = a.said || strings.TrimSpace(b.Text) != ""
	case *protocol.ToolCall:
		a.said = true
	}
	a.Sink.Done(index, item)
}

// End is how a response ended that the wire says is complete: one without a message
// and without a call is not, and worth another try.
func (a *Answer) End(end model.End, err error) (model.End, error) {
	if err != nil || a.said {
		return end, err
	}
	return end, &protocol.Error{
		Kind: protocol.ErrorModel, Retry: true, Message: "the response is empty: neither a message nor a call",
		Hint: "try again, or use another model",
	}
}
