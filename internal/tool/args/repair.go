package args

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// object reads the arguments as an object, after repairs if that is needed.
func (s *Schema) object(v *Values, text string) (map[string]json.RawMessage, error) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	if text == "" {
		return nil, nil
	}
	fixed, err := repair(v, text)
	if err != nil {
		if s.Bare != "" && bare(text) {
			v.note("took the text for %q", s.Bare)
			return map[string]json.RawMessage{s.Bare: json.RawMessage(marshal(text))}, nil
		}
		return nil, err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(fixed), &object) == nil {
		return object, nil
	}
	if one, ok := onlyElement(fixed); ok {
		v.note("took a list of one object for that object")
		return one, nil
	}
	if s.Bare != "" {
		v.note("took the value for %q", s.Bare)
		return map[string]json.RawMessage{s.Bare: json.RawMessage(fixed)}, nil
	}
	return nil, errors.New("the arguments must be a JSON object")
}

// bare reports whether a text is no attempt at JSON at all.
func bare(text string) bool { return !strings.ContainsAny(text[:1], "{[\"") }

// onlyElement returns the only element of a list if that is an object.
func onlyElement(text string) (map[string]json.RawMessage, bool) {
	var list []map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &list) != nil || len(list) != 1 {
		return nil, false
	}
	return list[0], true
}

// repair returns text as valid JSON. Arguments that were written as a string are
// taken out of it.
func repair(v *Values, text string) (string, error) {
	for range 3 { // some models escape again and again
		if !json.Valid([]byte(text)) {
			break
		}
		var inner string
		if json.Unmarshal([]byte(text), &inner) != nil {
			return text, nil
		}
		trimmed := strings.TrimSpace(inner)
		if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, `"{`) {
			return text, nil // a string that means itself
		}
		v.note("took the arguments out of a string")
		text = trimmed
	}
	for _, try := range []struct {
		note string
		fix  func(string) string
	}{
		{"removed a code fence", unfence},
		{"repaired JSON", mend},
		{"removed a code fence and repaired JSON", func(s string) string { return mend(unfence(s)) }},
		{"removed text around the arguments", inner},
	} {
		if fixed := try.fix(text); fixed != text && json.Valid([]byte(fixed)) {
			v.note("%s", try.note)
			return fixed, nil
		}
	}
	return "", problem(text)
}

// problem says in words what is wrong with a text that is not JSON.
func problem(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	var first json.RawMessage
	err := dec.Decode(&first)
	switch {
	case err == nil:
		return errors.New("there is more than one JSON value; make one call for each")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early, perhaps because the call was too long; nothing was done")
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("invalid JSON near %q: %v", around(text, int(syntax.Offset)), syntax)
	}
	return fmt.Errorf("invalid JSON: %v", err)
}

// around is a short piece of text at an offset.
func around(text string, at int) string {
	from, to := max(0, min(at, len(text))-20), min(len(text), max(0, at)+10)
	return strings.ToValidUTF8(text[from:to], "")
}

// unfence takes the content out of a Markdown code fence.
func unfence(text string) string {
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	_, rest, ok = strings.Cut(rest, "\n")
	if !ok {
		return text
	}
	body, after, ok := strings.Cut(rest, "\n```")
	if !ok || strings.TrimSpace(after) != "" {
		return text
	}
	return strings.TrimSpace(body)
}

// inner returns what stands between the first and the last brace.
func inner(text string) string {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return text
	}
	return text[from : to+1]
}

// mend repairs the slips of people and models who write JSON by hand: line feeds
// and tabs inside strings, unknown escapes, commas before a closing bracket,
// single quotes, names without quotes, the constants of Python. What it
// returns need not be valid.
func mend(text string) string {
	m := &mender{in: text}
	for m.at < len(m.in) {
		m.next()
	}
	return m.out.String()
}

type mender struct {
	in  string
	at  int
	out bytes.Buffer
}

func (m *mender) next() {
	c := m.in[m.at]
	switch {
	case c == '"' || c == '\'':
		m.quoted(c)
	case c == ',' && m.closes(m.at+1):
		m.at++ // a comma before a closing bracket
	case isLetter(c):
		m.word()
	default:
		m.out.WriteByte(c)
		m.at++
	}
}

// closes reports whether the next character is a closing bracket.
func (m *mender) closes(at int) bool {
	rest := strings.TrimLeft(m.in[at:], " \t\r\n")
	return rest != "" && (rest[0] == '}' || rest[0] == ']')
}

// quoted copies a string and gives it double quotes.
func (m *mender) quoted(quote byte) {
	m.out.WriteByte('"')
	m.at++
	for m.at < len(m.in) {
		c := m.in[m.at]
		switch {
		case c == quote:
			m.out.WriteByte('"')
			m.at++
			return
		case c == '\\':
			m.escape()
		case c == '"':
			m.out.WriteString(`\"`)
			m.at++
		case c < 0x20:
			m.out.WriteString(controls(c))
			m.at++
		default:
			m.out.WriteByte(c)
			m.at++
		}
	}
}

// controls is the escape of a character that JSON wants escaped.
func controls(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// escape copies an escape. A backslash before a character that needs none is
// itself, but before a quote it only means the quote.
func (m *mender) escape() {
	if m.at+1 >= len(m.in) {
		m.out.WriteByte('\\')
		m.at++
		return
	}
	switch c := m.in[m.at+1]; {
	case strings.IndexByte(`"\/bfnrt`, c) >= 0, c == 'u' && isHex(m.in[m.at+2:]):
		m.out.WriteString(m.in[m.at : m.at+2])
		m.at += 2
	case c == '\'':
		m.out.WriteByte('\'')
		m.at += 2
	default:
		m.out.WriteString(`\\`)
		m.at++
	}
}

func isHex(s string) bool {
	if len(s) < 4 {
		return false
	}
	return strings.Trim(s[:4], "0123456789abcdefABCDEF") == ""
}

var constants = map[string]string{"True": "true", "False": "false", "None": "null", "undefined": "null"}

// word copies a constant, or a name that lacks its quotes.
func (m *mender) word() {
	start := m.at
	for m.at < len(m.in) && (isLetter(m.in[m.at]) || m.in[m.at] >= '0' && m.in[m.at] <= '9') {
		m.at++
	}
	word := m.in[start:m.at]
	switch rest := strings.TrimLeft(m.in[m.at:], " \t\r\n"); {
	case strings.HasPrefix(rest, ":"):
		m.out.WriteString(`"` + word + `"`)
	case constants[word] != "":
		m.out.WriteString(constants[word])
	default:
		m.out.WriteString(word)
	}
}

func isLetter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}
