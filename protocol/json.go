package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Kind is the name of b's kind.
func Kind(b Body) string {
	if u, ok := b.(*Unknown); ok {
		return u.Kind
	}
	return kindsBy().names[reflect.TypeOf(b)]
}

// Unknown is an event of a kind that this version does not know, for example
// one written by a later version. It is kept and passed on as it is.
type Unknown struct {
	Kind string
	JSON json.RawMessage
}

func (*Unknown) isBody() {}

// MarshalJSON writes the body as it was read; one that was not there is null.
func (u *Unknown) MarshalJSON() ([]byte, error) { return u.JSON.MarshalJSON() }

// DecodeBody reads the JSON form of a body of the given kind.
func DecodeBody(kind string, data []byte) (Body, error) {
	mk, ok := kindsBy().makes[kind]
	if !ok {
		return &Unknown{Kind: kind, JSON: append(json.RawMessage(nil), data...)}, nil
	}
	b := mk()
	if err := json.Unmarshal(data, b); err != nil {
		return nil, fmt.Errorf("decode %s event: %w", kind, err)
	}
	return b, nil
}

type eventJSON struct {
	Seq     Seq             `json:"seq,omitempty"`
	Time    *time.Time      `json:"time,omitempty"`
	Turn    TurnID          `json:"turn,omitempty"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body"`
	Unsaved bool            `json:"unsaved,omitempty"`
}

// MarshalJSON writes {"seq", "time", "turn", "kind", "body"}.
func (e Event) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, err
	}
	w := eventJSON{Seq: e.Seq, Turn: e.Turn, Kind: Kind(e.Body), Body: body, Unsaved: e.Unsaved}
	if !e.Time.IsZero() {
		w.Time = &e.Time
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Event) UnmarshalJSON(data []byte) error {
	var w eventJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	body, err := DecodeBody(w.Kind, w.Body)
	if err != nil {
		return err
	}
	*e = Event{Seq: w.Seq, Turn: w.Turn, Body: body, Unsaved: w.Unsaved}
	if w.Time != nil {
		e.Time = *w.Time
	}
	return nil
}
