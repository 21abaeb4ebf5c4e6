package protocol

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// What a command prints need not be UTF-8, and is kept byte for byte. In JSON,
// which cannot hold such bytes, they are in a member of their own beside the text
// in which they are replaced.

// ValidText returns s with what is not UTF-8 replaced, for models and people.
func ValidText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// bytesOf returns s if it is not UTF-8.
func bytesOf(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

type plainResult CommandResult

type resultJSON struct {
	plainResult
	Bytes []byte `json:"output_base64,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (r CommandResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{plainResult(r), bytesOf(r.Output)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *CommandResult) UnmarshalJSON(data []byte) error {
	var in resultJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*r = CommandResult(in.plainResult)
	if in.Bytes != nil {
		r.Output = string(in.Bytes)
	}
	return nil
}

type plainDelta Delta

type deltaJSON struct {
	plainDelta
	Bytes []byte `json:"text_base64,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (d Delta) MarshalJSON() ([]byte, error) {
	return json.Marshal(deltaJSON{plainDelta(d), bytesOf(d.Text)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Delta) UnmarshalJSON(data []byte) error {
	var in deltaJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*d = Delta(in.plainDelta)
	if in.Bytes != nil {
		d.Text = string(in.Bytes)
	}
	return nil
}
