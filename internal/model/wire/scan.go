package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

var errJSON = errors.New("not a JSON object")

// Members walks the members of a JSON object without decoding their values, so
// that an event costs only what is wanted of it. It checks that the object and
// all its brackets and strings are closed, and leaves finer errors to whoever
// decodes a value.
//
//	m := wire.Scan(data)
//	for m.Next() {
//		switch string(m.Key) { … m.Value … }
//	}
//	if m.Err() != nil { … }
type Members struct {
	Key   []byte // without its quotes
	Value []byte

	data  []byte
	pos   int
	state scanState
}

type scanState int

const (
	scanStart scanState = iota
	scanMembers
	scanEnd
	scanFailed
)

// Scan returns the members of the object that data holds.
func Scan(data []byte) Members { return Members{data: data} }

// Err is nil if the object was walked to its end, and nothing followed it.
func (m *Members) Err() error {
	if m.state == scanEnd {
		return nil
	}
	return errJSON
}

// Next goes to the next member. It returns false at the end and after an error.
func (m *Members) Next() bool {
	switch m.state {
	case scanStart:
		if m.byte() != '{' {
			return m.fail()
		}
		m.state = scanMembers
		if m.peek() == '}' {
			m.pos++
			return m.end()
		}
	case scanMembers:
		switch m.byte() {
		case '}':
			return m.end()
		case ',':
		default:
			return m.fail()
		}
	default:
		return false
	}
	return m.member()
}

func (m *Members) member() bool {
	m.space()
	key := m.string()
	if key == nil || m.byte() != ':' {
		return m.fail()
	}
	m.Key = key[1 : len(key)-1]
	if bytes.IndexByte(m.Key, '\\') >= 0 {
		s, ok := String(key)
		if !ok {
			return m.fail()
		}
		m.Key = []byte(s)
	}
	m.space()
	start := m.pos
	if !m.skip() {
		return m.fail()
	}
	m.Value = m.data[start:m.pos]
	return true
}

func (m *Members) fail() bool {
	m.state = scanFailed
	return false
}

func (m *Members) end() bool {
	m.space()
	m.state = scanEnd
	if m.pos != len(m.data) {
		m.state = scanFailed
	}
	return false
}

func (m *Members) space() {
	for m.pos < len(m.data) {
		switch m.data[m.pos] {
		case ' ', '\t', '\r', '\n':
			m.pos++
		default:
			return
		}
	}
}

// peek is the next byte that is not white space, or 0.
func (m *Members) peek() byte {
	m.space()
	if m.pos == len(m.data) {
		return 0
	}
	return m.data[m.pos]
}

func (m *Members) byte() byte {
	c := m.peek()
	if c != 0 {
		m.pos++
	}
	return c
}

// string returns the string at pos with its quotes, or nil.
func (m *Members) string() []byte {
	start := m.pos
	if start == len(m.data) || m.data[start] != '"' {
		return nil
	}
	for i := start + 1; ; {
		n := bytes.IndexByte(m.data[i:], '"')
		if n < 0 {
			return nil
		}
		i += n
		slashes := 0
		for m.data[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			m.pos = i
			return m.data[start:i]
		}
	}
}

// skip goes past one value.
func (m *Members) skip() bool {
	depth := 0
	for {
		switch c := m.peek(); c {
		case 0:
			return false
		case '"':
			if m.string() == nil {
				return false
			}
		case '{', '[':
			depth++
			m.pos++
			continue
		case '}', ']':
			if depth == 0 {
				return false
			}
			depth--
			m.pos++
		case ',', ':':
			if depth == 0 {
				return false
			}
			m.pos++
			continue
		default:
			if !m.scalar() {
				return false
			}
		}
		if depth == 0 {
			return true
		}
	}
}

// scalar goes past a number or a word.
func (m *Members) scalar() bool {
	start := m.pos
	for m.pos < len(m.data) {
		c := m.data[m.pos]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '+', c == '.':
			m.pos++
		default:
			return m.pos > start
		}
	}
	return m.pos > start
}

// Elements walks the elements of a JSON array, as Members does for an object.
type Elements struct {
	Value []byte

	m Members
}

// ScanArray returns the elements of the array that data holds.
func ScanArray(data []byte) Elements { return Elements{m: Members{data: data}} }

// Err is nil if the array was walked to its end, and nothing followed it.
func (e *Elements) Err() error { return e.m.Err() }

// Next goes to the next element. It returns false at the end and after an error.
func (e *Elements) Next() bool {
	m := &e.m
	switch m.state {
	case scanStart:
		if m.byte() != '[' {
			return m.fail()
		}
		m.state = scanMembers
		if m.peek() == ']' {
			m.pos++
			return m.end()
		}
	case scanMembers:
		switch m.byte() {
		case ']':
			return m.end()
		case ',':
		default:
			return m.fail()
		}
	default:
		return false
	}
	m.space()
	start := m.pos
	if !m.skip() {
		return m.fail()
	}
	e.Value = m.data[start:m.pos]
	return true
}

// String decodes a JSON string. It reports false if raw is not one.
func String(raw []byte) (string, bool) {
	n := len(raw)
	if n < 2 || raw[0] != '"' || raw[n-1] != '"' {
		return "", false
	}
	if inner := raw[1 : n-1]; plain(inner) {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// plain reports whether the inside of a string stands for itself.
func plain(b []byte) bool {
	for _, c := range b {
		if c == '\\' || c == '"' || c < 0x20 {
			return false
		}
	}
	return utf8.Valid(b)
}

// Int decodes a whole number. It reports false if raw is not one.
func Int(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

const hex = "0123456789abcdef"

// AppendString appends s to dst as a JSON string. The same text always gives
// the same bytes; what is not UTF-8 is replaced.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
