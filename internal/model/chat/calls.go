package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model"
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

// A callPiece is what a server sends of a call at a time.
type callPiece struct {
	Index    *int64        `json:"index"`
	ID       string        `json:"id"`
	Function functionPiece `json:"function"`

	Extra json.RawMessage `json:"extra_content"`
}

type functionPiece struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// text is the piece of the arguments; an object stands for its text.
func (f functionPiece) text() string {
	if s, ok := wire.String(f.Arguments); ok {
		return s
	}
	if string(f.Arguments) == "null" {
		return ""
	}
	return string(f.Arguments)
}

// toolCalls takes pieces of calls.
func (r *reader) toolCalls(raw []byte) bool {
	if raw == nil || string(raw) == "null" {
		return true
	}
	list := wire.ScanArray(raw)
	for list.Next() {
		var piece callPiece
		if json.Unmarshal(list.Value, &piece) != nil {
			return false
		}
		r.takePiece(piece)
	}
	return list.Err() == nil
}

// functionCall takes a piece of the one call that the wire had before it had several.
func (r *reader) functionCall(raw []byte) bool {
	if raw == nil || string(raw) == "null" {
		return true
	}
	var f functionPiece
	if json.Unmarshal(raw, &f) != nil {
		return false
	}
	if f.Name != "" || len(r.calls) > 0 {
		r.takePiece(callPiece{Function: f})
	}
	return true
}

func (r *reader) takePiece(piece callPiece) {
	c := r.callOf(piece)
	if c.id == "" {
		c.id = piece.ID
	}
	if c.arguments.Len() == 0 && piece.Function.Name != c.name {
		c.name += piece.Function.Name // a name may come in pieces
	}
	if piece.Extra != nil {
		c.extra = piece.Extra
	}
	c.arguments.WriteString(piece.Function.text())
}

// callOf is the call that a piece belongs to, which may begin with it. Servers number
// calls, or give each piece the id, or another id with every piece, or send whole calls that all have
// the number 0 or none.
func (r *reader) callOf(piece callPiece) *call {
	c := r.known(piece)
	if c != nil && !r.begins(c, piece) {
		return c
	}
	c = &call{index: r.items, id: piece.ID}
	r.items++
	r.calls = append(r.calls, c)
	if piece.Index != nil {
		r.byIndex[*piece.Index] = c
	}
	return c
}

// known is the call that a piece may continue, or nil.
func (r *reader) known(piece callPiece) *call {
	switch {
	case piece.Index != nil:
		return r.byIndex[*piece.Index]
	case piece.ID != "":
		if i := slices.IndexFunc(r.calls, func(c *call) bool { return c.id == piece.ID }); i >= 0 {
			return r.calls[i]
		}
		if piece.Function.Name != "" {
			return nil
		}
	}
	if len(r.calls) == 0 {
		return nil
	}
	return r.calls[len(r.calls)-1]
}

// begins reports whether a piece is the first of another call than c.
func (r *reader) begins(c *call, piece callPiece) bool {
	name := piece.Function.Name
	if name == "" {
		return false // what continues has no name
	}
	if piece.ID != "" && c.id != "" && piece.ID != c.id {
		return true
	}
	sameID := piece.ID != "" && piece.ID == c.id
	if sameID || c.name == "" {
		return false
	}
	if c.arguments.Len() > 0 {
		// A server may repeat the name with each piece; a call whose arguments are
		// complete is not continued.
		return json.Valid([]byte(c.arguments.String())) && (name != c.name || piece.Function.text() != "")
	}
	return name != c.name && offered(r.tools, c.name) && offered(r.tools, name) && !offered(r.tools, c.name+name)
}

func offered(tools []model.ToolSpec, name string) bool {
	return slices.ContainsFunc(tools, func(t model.ToolSpec) bool { return t.Name == name })
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
