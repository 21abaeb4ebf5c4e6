package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/protocol"
)

// A call is a call whose arguments grow.
type call struct {
	index     int
	id, name  string
	arguments strings.Builder
	extra     json.RawMessage
}

// toolCalls takes pieces of calls.
func (r *reader) toolCalls(raw []byte) bool {
	if raw == nil || string(raw) == "null" {
		return true
	}
	list := wire.ScanArray(raw)
	for list.Next() {
		var piece struct {
			Index    *int64 `json:"index"`
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
			Extra json.RawMessage `json:"extra_content"`
		}
		if json.Unmarshal(list.Value, &piece) != nil {
			return false
		}
		c := r.call(piece.Index, piece.ID)
		if c.id == "" {
			c.id = piece.ID
		}
		if c.name == "" {
			c.name = piece.Function.Name
		}
		if piece.Extra != nil {
			c.extra = piece.Extra
		}
		if s, ok := wire.String(piece.Function.Arguments); ok {
			c.arguments.WriteString(s)
		} else if a := piece.Function.Arguments; a != nil && string(a) != "null" {
			c.arguments.Write(a) // an object, where the wire wants its text
		}
	}
	return list.Err() == nil
}

// call is the call that a piece belongs to. Servers number them, or give each
// piece the id, or send whole calls that all have the number 0.
func (r *reader) call(index *int64, id string) *call {
	var c *call
	switch {
	case index != nil:
		c = r.byIndex[*index]
	case id != "":
		for _, other := range r.calls {
			if other.id == id {
				c = other
			}
		}
	case len(r.calls) > 0:
		c = r.calls[len(r.calls)-1]
	}
	if c != nil && (id == "" || c.id == "" || c.id == id) {
		return c
	}
	c = &call{index: r.items, id: id}
	r.items++
	r.calls = append(r.calls, c)
	if index != nil {
		r.byIndex[*index] = c
	}
	return c
}

// doneCall passes on the call that is item i.
func (r *reader) doneCall(i int) *protocol.Error {
	for n, c := range r.calls {
		if c.index != i {
			continue
		}
		if c.name == "" {
			return &protocol.Error{Kind: protocol.ErrorModel, Retry: true, Message: "the model made a call without a name"}
		}
		if c.id == "" {
			c.id = fmt.Sprintf("call_%s_%d", r.end.ID, n)
		}
		item := wire.FromFunction(r.tools, c.id, c.name, c.arguments.String())
		if c.extra != nil {
			item.Raw = protocol.Raw{Wire: Wire, JSON: c.extra}
		}
		r.sink.Done(i, item)
	}
	return nil
}
