package message

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// A LineFilter passes on the lines of a server that are messages, shortened if they are long. Some servers print
// other things to their standard output as well, which would end the connection.
type LineFilter struct {
	to      io.Writer
	stray   func([]byte) // takes what is no message
	tooLong func()

	line    cutter
	longest int
}

// NewLineFilter makes a filter that writes messages to to and calls stray with what is none. tooLong is called for a line that is longer
// than any message may be.
func NewLineFilter(to io.Writer, stray func([]byte), m Bounds, tooLong func()) *LineFilter {
	return &LineFilter{to: to, stray: stray, tooLong: tooLong, line: cutter{keep: m.Keep}, longest: m.Longest}
}

// Take takes the next bytes of a server.
func (f *LineFilter) Take(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			f.add(b)
			return
		}
		f.add(b[:i])
		f.end()
		b = b[i+1:]
	}
}

func (f *LineFilter) add(b []byte) {
	if f.line.size > f.longest {
		return
	}
	f.line.take(b)
	if f.line.size > f.longest {
		f.tooLong()
	}
}

func (f *LineFilter) end() {
	dropped := f.line.dropped
	line := bytes.TrimSpace(f.line.finish())
	switch {
	case len(line) == 0 && dropped:
		f.stray([]byte("a message was too long and was dropped\n"))
	case len(line) == 0:
	case !isMessage(line):
		f.stray(append(line, '\n'))
	default:
		_, _ = f.to.Write(append(line, '\n')) // fails when the reader has left
	}
}

// isMessage reports whether a line is a message of JSON-RPC, or a list of them.
func isMessage(line []byte) bool {
	if line[0] != '[' {
		var m message
		return line[0] == '{' && json.Unmarshal(line, &m) == nil && m.ok()
	}
	var list []message
	return json.Unmarshal(line, &list) == nil && len(list) > 0 && !slices.ContainsFunc(list, func(m message) bool { return !m.ok() })
}

// A message is as much of one as is needed to recognize it.
type message struct {
	Version string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	ID      json.RawMessage `json:"id"`
}

func (m message) ok() bool {
	return m.Version == "2.0" && (m.Method != "" || m.ID != nil) && !bytes.ContainsAny(m.ID[:min(1, len(m.ID))], "{[tf")
}
