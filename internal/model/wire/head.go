package wire

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// A Head keeps the parts of a request that seldom change, the instructions and
// the tools, in their encoded form. The zero value is ready; it may be used from any goroutine.
type Head struct{ last atomic.Pointer[head] }

type head struct {
	instructions string
	tools        []model.ToolSpec
	encoded      Encoded
}

// Encoded is what a wire makes of the instructions and the tools.
type Encoded struct{ Instructions, Tools []byte }

// Get returns what encode makes of p's instructions and tools; encode is called
// only if they are not those of the last call.
func (h *Head) Get(p model.Prompt, encode func(model.Prompt) Encoded) Encoded {
	if l := h.last.Load(); l != nil && l.instructions == p.Instructions && slices.EqualFunc(l.tools, p.Tools, sameTool) {
		return l.encoded
	}
	l := &head{p.Instructions, slices.Clone(p.Tools), encode(p)}
	h.last.Store(l)
	return l.encoded
}

func sameTool(a, b model.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Kind == b.Kind && a.Grammar == b.Grammar && bytes.Equal(a.Parameters, b.Parameters)
}

// UnknownCallsPlace is where the outputs without a call are put among the items of a
// prompt: before the last message of the user, or at the end. It is -1 if there are none.
func UnknownCallsPlace(p model.Prompt) int {
	if len(p.UnknownCalls) == 0 {
		return -1
	}
	for i := len(p.Items) - 1; i >= 0; i-- {
		if p.Items[i].Kind == protocol.PromptUser {
			return i
		}
	}
	return len(p.Items)
}
