// Package message reads the messages of MCP servers within bounds: long ones are shortened while they are read, so that what one takes
// does not depend on its length. Start reading at [LineFilter], for a server that is a process, and [Shorten], for a service.
package message

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// KeptBytes is how much is kept of a message: what exceeds it is left out while the message is read. A message that does not end after
// LongestBytes is the last one of its server.
const (
	KeptBytes    = 16 << 20
	LongestBytes = 256 << 20
)

// Bounds are the bounds of one message of a server, in bytes.
type Bounds struct {
	Keep    int
	Longest int // a server that sends more without an end is disconnected
}

// DefaultBounds are those that servers have.
var DefaultBounds = Bounds{Keep: KeptBytes, Longest: LongestBytes}

// shortString is what is always kept of a string: names and ids are not longer.
const shortString = 64

// maxDepth is how deep a list may be nested of which the end is left out.
const maxDepth = 64

// ErrTooLong is why a server was disconnected.
var ErrTooLong = errors.New("it sent a message that is too long, and the connection was closed")

// ErrParts answers a request whose result cannot be shortened.
var ErrParts = errors.New("the result is too long, and it has too many parts to be shortened")

// OmittedKey is the key in the _meta of a result that says how many bytes of it were left out.
const OmittedKey = "fermata/omittedBytes"

// A cutter takes a JSON message in pieces and keeps a shorter one: of long strings the beginning, with a note, and of long
// lists the first elements. Base64 (images, sounds) is kept whole or not at all. It recognizes what it needs for that and does not
// check the message otherwise: what is not JSON stays so.
type cutter struct {
	keep int // bytes of a message

	out     []byte
	size    int  // bytes that were taken of this message
	omitted int  // bytes of them that were left out
	dropped bool // it has too many parts

	depth   int
	kinds   [maxDepth]byte // '{' or '[' by depth
	skip    int            // the depth of the list whose other elements are left out; 0 if none
	section string         // the key at the top of the message that the value belongs to

	inString bool
	start    int    // of the string in out
	cut      int    // bytes of the string that were left out
	escape   int    // 1 behind a backslash, 2 to 5 in the digits behind \u, from the last one
	last     []byte // the beginning of the last string
	key      []byte // of the value that follows

	id     []byte // of the message
	idOpen bool   // the bytes that follow are those of the id
}

// take takes the next bytes. They contain no line feed.
func (c *cutter) take(b []byte) {
	c.size += len(b)
	for len(b) > 0 {
		switch {
		case !c.inString:
			c.takeOutside(b[0])
			b = b[1:]
		case c.escape > 0:
			c.takeEscape(b[0])
			b = b[1:]
		default:
			b = c.takeString(b)
		}
	}
}

// takeNewline takes a line feed, which no string contains.
func (c *cutter) takeNewline() {
	c.size++
	c.inString, c.escape = false, 0
	c.emit('\n')
}

// finish returns what is kept of the message, nil if nothing can be. It is valid until the next byte is taken.
func (c *cutter) finish() []byte {
	out := c.out
	if c.dropped {
		out = nil
		if id := bytes.TrimSpace(c.id); len(id) > 0 && len(id) <= shortString {
			out = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`, id, ErrParts)
		}
	}
	room := c.out[:0]
	if cap(room) > 1<<20 {
		room = nil
	}
	*c = cutter{keep: c.keep, out: room, last: c.last[:0], key: c.key[:0], id: c.id[:0]}
	return out
}

// takeOutside takes a byte that is not part of a string.
func (c *cutter) takeOutside(x byte) {
	if x == ',' || x == '}' {
		c.idOpen = false
	}
	c.noteID(x)
	switch x {
	case '"':
		c.emit(x)
		c.inString, c.start, c.cut, c.last = true, len(c.out), 0, c.last[:0]
		return
	case ':':
		c.key = append(c.key[:0], c.last...)
		c.idOpen = c.depth == 1 && string(c.key) == "id"
	case '{', '[':
		c.open(x)
	case '}', ']':
		c.close()
	case ',':
		if c.skip == 0 && c.depth > 2 && c.depth < maxDepth && c.kinds[c.depth] == '[' && len(c.out) >= c.keep {
			c.skip = c.depth
		}
		c.key = c.key[:0]
	}
	c.emit(x)
}

// noteID keeps the id of the message, for the answer if its result cannot be shortened.
func (c *cutter) noteID(b ...byte) {
	if c.idOpen && len(c.id) <= shortString {
		c.id = append(c.id, b[:min(len(b), shortString+1)]...)
	}
}

func (c *cutter) open(x byte) {
	c.depth++
	if c.depth < maxDepth {
		c.kinds[c.depth] = x
	}
	if c.depth == 2 {
		c.section = string(c.key)
	}
	c.key = c.key[:0]
}

func (c *cutter) close() {
	if c.skip == c.depth {
		c.skip = 0
	}
	if c.depth == 2 && c.section == "result" && c.kinds[2] == '{' && c.omitted > 0 && !c.dropped {
		c.out = fmt.Appendf(c.out, `,"_meta":{%q:%d}`, OmittedKey, c.omitted)
	}
	c.depth = max(c.depth-1, 0)
}

// emit keeps a byte that is not part of a string, if there is room.
func (c *cutter) emit(x byte) {
	if len(c.out) >= 2*c.keep {
		c.dropped = true
	}
	if c.skip > 0 || c.dropped {
		c.omitted++
		return
	}
	c.out = append(c.out, x)
}

// takeString takes bytes of a string up to one that means something, and returns the others.
func (c *cutter) takeString(b []byte) []byte {
	i := bytes.IndexAny(b, `"\`)
	if i < 0 {
		i = len(b)
	}
	c.keepString(b[:i])
	if i == len(b) {
		return nil
	}
	if b[i] == '\\' {
		c.escape = 1
		c.noteID(b[i])
		if c.roomOfString() > 0 {
			c.out = append(c.out, b[i])
		} else {
			c.cutString(1)
		}
		return b[i+1:]
	}
	c.endString()
	return b[i+1:]
}

// roomOfString is how many bytes of the string can still be kept.
func (c *cutter) roomOfString() int {
	if c.cut > 0 || c.skip > 0 || c.dropped {
		return 0
	}
	return max(c.keep, c.start+shortString) - len(c.out)
}

// keepString keeps as much of a part of a string as there is room for.
func (c *cutter) keepString(b []byte) {
	c.noteID(b...)
	c.last = append(c.last, b[:min(len(b), shortString-min(len(c.last), shortString))]...)
	if room := max(c.roomOfString(), 0); len(b) > room {
		c.out = append(c.out, b[:room]...)
		c.cutString(len(b) - room)
		return
	}
	c.out = append(c.out, b...)
}

// cutString leaves out so many bytes of the string. What is kept ends in a whole character.
func (c *cutter) cutString(n int) {
	if c.skip > 0 || c.dropped {
		c.omitted += n
		return
	}
	for i := 1; i < utf8.UTFMax && c.cut == 0 && len(c.out) > c.start; i++ {
		if r, size := utf8.DecodeLastRune(c.out); r != utf8.RuneError || size != 1 {
			break
		}
		c.out = c.out[:len(c.out)-1]
		n++
	}
	c.omitted += n
	c.cut += n
}

// takeEscape takes a byte of an escape sequence, which is kept whole or not at all.
func (c *cutter) takeEscape(x byte) {
	switch {
	case c.escape == 1 && x == 'u':
		c.escape = 5
	case c.escape <= 2:
		c.escape = 0
	default:
		c.escape--
	}
	c.keepByte(x)
}

func (c *cutter) keepByte(x byte) {
	c.noteID(x)
	if c.cut > 0 || c.skip > 0 || c.dropped {
		c.cutString(1)
		return
	}
	c.out = append(c.out, x)
}

// endString ends a string, with a note if a part of it was left out.
func (c *cutter) endString() {
	c.noteID('"')
	if c.cut > 0 {
		switch string(c.key) {
		case "data", "blob":
			c.omitted += len(c.out) - c.start
			c.out = c.out[:c.start]
		default:
			c.out = fmt.Appendf(c.out, `\n[%d bytes were left out here]`, c.cut)
		}
	}
	c.inString = false
	c.emit('"')
}
