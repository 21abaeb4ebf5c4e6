package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxText is how much of a body is shown when it is not the JSON of an error.
const maxText = 2000

// A Complaint is what a service says went wrong, in an answer or in a stream.
type Complaint struct {
	Status  int // 0 in a stream, unless the code is a status
	Type    string
	Code    string
	Message string
	Param   string
	After   time.Duration // how long to wait, if it said so
	Resets  time.Duration // when a usage limit is lifted, if it said so
	Body    []byte        // all it said
}

// complaintError is the inner part of an error in the forms in use.
type complaintError struct {
	Message  string          `json:"message"`
	Type     json.RawMessage `json:"type"`
	Code     json.RawMessage `json:"code"`
	Param    json.RawMessage `json:"param"`
	Resets   float64         `json:"resets_in_seconds"`
	ResetsAt float64         `json:"resets_at"`
	Details  []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
	Metadata struct {
		Raw     json.RawMessage   `json:"raw"`
		Headers map[string]string `json:"headers"`
	} `json:"metadata"`
}

// ParseComplaint reads the body of an error in any of the forms in use:
// {"error":{…}}, {"error":"…"}, {"message":"…"}, {"error_message":"…"}, {"detail":"…"}, a list of those, or text.
func ParseComplaint(body []byte) Complaint {
	c := Complaint{Body: body}
	var list []json.RawMessage
	obj := body
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		obj = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Detail  json.RawMessage `json:"detail"`

		ErrorType    string `json:"error_type"` // DeepInfra
		ErrorMessage string `json:"error_message"`
	}
	if json.Unmarshal(obj, &outer) != nil {
		if !isEmpty(body) {
			c.Message = shorten(string(body))
		}
		return c
	}
	var inner complaintError
	text := ""
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil:
		c.take(inner)
	case json.Unmarshal(outer.Error, &text) == nil, json.Unmarshal(outer.Detail, &text) == nil:
		c.Message, c.Code = text, word(outer.Code)
	default:
		c.Message, c.Type, c.Code = cmp.Or(outer.Message, outer.ErrorMessage), cmp.Or(outer.ErrorType, outer.Type), word(outer.Code)
	}
	if c.Message == "" && !isEmpty(body) {
		c.Message = shorten(string(body))
	}
	if n, err := strconv.Atoi(c.Code); err == nil && n >= http.StatusBadRequest && n < 600 {
		c.Status = n
	}
	return c
}

// isEmpty reports whether JSON says nothing, however it is nested: {}, {"error":null}, [{"error":{"message":""}}].
func isEmpty(body []byte) bool {
	return len(bytes.Trim(emptyJSON().ReplaceAll(body, nil), " \t\r\n")) == 0
}

// emptyJSON matches what JSON is made of when it says nothing: brackets, nulls, empty texts and the names of members.
var emptyJSON = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"[a-z_]*"\s*:|null|""|[{}\[\],]`) })

func (c *Complaint) take(in complaintError) {
	c.Message, c.Type, c.Code, c.Param = in.Message, word(in.Type), word(in.Code), word(in.Param)
	c.Resets = seconds(in.Resets)
	if c.Resets == 0 && in.ResetsAt > 0 {
		c.Resets = max(0, time.Until(time.Unix(int64(in.ResetsAt), 0)))
	}
	for _, d := range in.Details { // Google
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			c.After = wait
		}
	}
	if ms, err := strconv.ParseInt(in.Metadata.Headers["X-RateLimit-Reset"], 10, 64); err == nil { // OpenRouter
		c.Resets = max(0, time.Until(time.UnixMilli(ms)))
	}
	c.unwrap(in.Metadata.Raw)
}

// unwrap takes over what the service behind a gateway said; the gateway itself
// only says that there was an error.
func (c *Complaint) unwrap(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	text, ok := String(raw)
	if !ok {
		text = string(raw)
	}
	inner := ParseComplaint([]byte(text))
	if inner.Message == "" {
		return
	}
	c.Message = strings.TrimSpace(c.Message + ": " + inner.Message)
	if inner.Code != "" && inner.Status == 0 {
		c.Code = inner.Code
	}
	if inner.Type != "" {
		c.Type = inner.Type
	}
	if inner.Param != "" {
		c.Param = inner.Param
	}
	c.Resets = max(c.Resets, inner.Resets)
}

// word is a JSON string or number as text.
func word(raw json.RawMessage) string {
	if s, ok := String(raw); ok {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

func shorten(s string) string {
	s = strings.TrimSpace(s)
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func (c Complaint) is(words ...string) bool {
	for _, w := range words {
		if c.Type == w || c.Code == w {
			return true
		}
	}
	return false
}

func (c Complaint) says(phrases ...string) bool {
	text := strings.ToLower(c.Message)
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
