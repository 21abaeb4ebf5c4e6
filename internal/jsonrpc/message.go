package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// The error codes of JSON-RPC 2.0.
const (
	CodeParse    = -32700 // not JSON
	CodeRequest  = -32600 // not a request, or one that cannot be met
	CodeMethod   = -32601 // no such method
	CodeParams   = -32602 // the method does not take these params
	CodeInternal = -32603 // a failure of ours

	CodeCancelled = -32800 // the peer cancelled it; see Options.AnswerCancelled
)

// An Error is a JSON-RPC error. A handler that returns one chooses the code.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asError is err as it goes over the wire.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	code := CodeInternal
	if cancelled := (*CancelledError)(nil); errors.As(err, &cancelled) {
		code = CodeCancelled
	}
	return &Error{Code: code, Message: err.Error()}
}

// A message is a request, a notification or a response.
type message struct {
	id      json.RawMessage // as it came; nil if there is none
	method  string
	params  json.RawMessage
	result  json.RawMessage
	failure *Error
	reply   bool // a response
	invalid *Error
}

// parse takes a line apart. A line that is no batch gives one message. Whatever is wrong
// with one is said in its invalid.
func parse(line []byte) (messages []message, batch bool) {
	broken := func(code int, text string) []message {
		return []message{{invalid: &Error{Code: code, Message: text}}}
	}
	switch {
	case !utf8.Valid(line):
		return broken(CodeParse, "not UTF-8"), false
	case !json.Valid(line):
		return broken(CodeParse, "not JSON"), false
	}
	line = bytes.TrimLeft(line, " \t\r\n")
	if line[0] != '[' {
		return []message{parseOne(line)}, false
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(line, &parts); err != nil {
		return broken(CodeParse, err.Error()), false
	}
	if len(parts) == 0 {
		return broken(CodeRequest, "an empty batch"), false
	}
	for _, part := range parts {
		messages = append(messages, parseOne(part))
	}
	return messages, true
}

func parseOne(data []byte) message {
	var m message
	refuse := func(format string, args ...any) message {
		m.invalid = Errorf(CodeRequest, format, args...)
		return m
	}
	var f map[string]json.RawMessage
	if err := json.Unmarshal(data, &f); err != nil || f == nil {
		return refuse("not an object")
	}
	failure, failed := f["error"]
	name, named := f["method"]
	_, answered := f["result"]
	if id, ok := f["id"]; ok {
		if failed && !named && string(id) == "null" {
			m.reply = true // of a peer that could not read us: two that answer that would never stop
			return m
		}
		if _, ok := idKey(id); !ok {
			return refuse("an id is a text or a number")
		}
		m.id = id
	}
	if v, ok := f["jsonrpc"]; ok && string(v) != `"2.0"` {
		return refuse("this is JSON-RPC 2.0")
	}
	m.params, m.result = f["params"], f["result"]
	switch {
	case named && (failed || answered):
		return refuse("both a request and a response")
	case named:
		if json.Unmarshal(name, &m.method) != nil || m.method == "" {
			return refuse("the method is no name")
		}
		return m
	case !failed && !answered:
		return refuse("neither a request nor a response")
	case m.id == nil:
		return refuse("a response to nothing")
	}
	m.reply = true
	if failed && string(failure) != "null" {
		m.failure = &Error{Code: CodeInternal, Message: "an error that cannot be read"}
		_ = json.Unmarshal(failure, m.failure) // what cannot be read stays what it is
	}
	return m
}

// idKey makes ids comparable however they are written.
func idKey(id json.RawMessage) (string, bool) {
	id = bytes.TrimSpace(id)
	if len(id) == 0 {
		return "", false
	}
	switch c := id[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(id, &s) != nil {
			return "", false
		}
		return `"` + s, true
	case c == '-' || c >= '0' && c <= '9':
		return string(id), true
	}
	return "", false
}

var null = json.RawMessage("null")

type wireRequest struct {
	Version string `json:"jsonrpc,omitempty"`
	ID      any    `json:"id,omitempty"` // a *int64 or a string
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
	Emitted int64  `json:"emittedAtMs,omitempty"`
}

type wireResult struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

type wireError struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id"`
	Error   *Error          `json:"error"`
}

// response encodes the answer to id.
func (c *Conn) response(id json.RawMessage, result any, err error) []byte {
	if id == nil {
		id = null
	}
	if err == nil {
		var line []byte
		if result == nil {
			result = struct{}{}
		}
		if line, err = encode(wireResult{c.version(), id, result}); err == nil {
			return line
		}
	}
	line, err := encode(wireError{c.version(), id, asError(err)})
	if err != nil { // only by Data that is no JSON
		line, _ = encode(wireError{c.version(), id, Errorf(CodeInternal, "%v", err)})
	}
	return line
}

// encode writes v in one line, without its end. Text stays as it is: no client
// needs < to be escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
