package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// maxLine is the longest message that is taken. Longer ones are dropped: the call that
// waits for one ends with its time limit.
const maxLine = 64 << 20

// A lineFilter passes on the lines of a server that are messages. Some servers print
// other things to their standard output as well, which would end the connection.
type lineFilter struct {
	to    io.Writer
	stray func([]byte) // takes what is no message

	line []byte
	long bool // the line is too long
}

func (f *lineFilter) take(b []byte) {
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

func (f *lineFilter) add(b []byte) {
	if f.long || len(f.line)+len(b) > maxLine {
		f.long, f.line = true, nil
		return
	}
	f.line = append(f.line, b...)
}

func (f *lineFilter) end() {
	line := bytes.TrimSpace(f.line)
	switch {
	case f.long:
		f.stray([]byte("a message was too long and was dropped\n"))
	case len(line) == 0:
	case !isMessage(line):
		f.stray(append(line, '\n'))
	default:
		_, _ = f.to.Write(append(line, '\n')) // fails when nobody reads any more
	}
	f.long = false
	f.line = f.line[:0]
	if cap(f.line) > 1<<20 {
		f.line = nil
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
