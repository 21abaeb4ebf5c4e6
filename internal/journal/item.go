package journal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// An open item larger than headBytes + tailBytes loses its middle in memory, so
// that a command that prints gigabytes does not cost gigabytes.
const (
	blockBytes = 64 << 10
	headBytes  = 1 << 20
	tailBytes  = 1 << 20
	headBlocks = headBytes / blockBytes
	tailBlocks = tailBytes / blockBytes
)

// An Item holds the bytes written to one open item. It is guarded by the log's
// mutex, but bytes once written never change, so that slices of them may be
// read without it.
type Item struct {
	name     string
	scope    string
	blocks   []*block
	end      int64  // offset behind the last byte
	closedBy uint64 // number of the record that closes it; 0 while it is open
	gone     bool   // that record is visible and the bytes are dropped

	taken int64       // bytes that the backend has taken
	full  bool        // it takes no more
	saved int64       // bytes that it has; known only if the log holds text
	place Place       // where the backend keeps the first of them; zero if it has none yet
	marks []writeMark // when what was written, for the memory version's crashes
}

// A block is a stretch of an item that is cut between runes at both ends.
type block struct {
	off  int64
	buf  []byte
	tags []tagRun
}

// A tagRun says that the bytes of a block from at on have the tag.
type tagRun struct {
	at  int
	tag string
}

// A Piece is a part of an open item with one tag. Text is not a copy and must
// not be changed.
type Piece struct {
	Offset int64
	Tag    string
	Text   []byte
}

// add appends text.
func (it *Item) add(tag, text string) {
	for text != "" {
		b := it.tail()
		n := cut(text, blockBytes-len(b.buf))
		if n == 0 {
			b = it.grow()
			n = cut(text, blockBytes)
		}
		if k := len(b.tags); k == 0 || b.tags[k-1].tag != tag {
			b.tags = append(b.tags, tagRun{len(b.buf), tag})
		}
		b.buf = append(b.buf, text[:n]...)
		it.end += int64(n)
		text = text[n:]
	}
}

// skip leaves out what lies before off, as after a lost progress line.
func (it *Item) skip(off int64) {
	if off <= it.end {
		return
	}
	it.end = off
	it.grow()
}

func (it *Item) tail() *block {
	if len(it.blocks) == 0 {
		return it.grow()
	}
	return it.blocks[len(it.blocks)-1]
}

func (it *Item) grow() *block {
	if len(it.blocks) == headBlocks+tailBlocks {
		it.blocks = slices.Delete(it.blocks, headBlocks, headBlocks+1)
	}
	b := &block{off: it.end}
	it.blocks = append(it.blocks, b)
	return b
}

// pieces returns what is kept of the bytes from off up to end.
func (it *Item) pieces(off, end int64) []Piece {
	var ps []Piece
	for _, b := range it.blocks {
		if b.off+int64(len(b.buf)) <= off {
			continue
		}
		for i, run := range b.tags {
			from, to := run.at, len(b.buf)
			if i+1 < len(b.tags) {
				to = b.tags[i+1].at
			}
			from = max(from, int(off-b.off))
			to = min(to, int(end-b.off))
			if from < to {
				ps = append(ps, Piece{b.off + int64(from), run.tag, b.buf[from:to:to]})
			}
		}
	}
	return ps
}

// join copies pieces of one item into chunks, adjacent ones of one tag into one.
func join(name string, ps []Piece) []Chunk {
	var chunks []Chunk
	for len(ps) > 0 {
		n, size := 1, len(ps[0].Text)
		for n < len(ps) && ps[n].Tag == ps[0].Tag && ps[n].Offset == ps[0].Offset+int64(size) {
			size += len(ps[n].Text)
			n++
		}
		var text strings.Builder
		text.Grow(size)
		for _, p := range ps[:n] {
			text.Write(p.Text)
		}
		chunks = append(chunks, Chunk{name, ps[0].Tag, ps[0].Offset, text.String()})
		ps = ps[n:]
	}
	return chunks
}

// cut returns the largest n <= room such that text[:n] ends between runes, if it
// is UTF-8.
func cut[T string | []byte](text T, room int) int {
	if len(text) <= room {
		return len(text)
	}
	for n := room; n > max(0, room-utf8.UTFMax); n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	if room < utf8.UTFMax {
		return 0 // there will be more room
	}
	return room // it is not UTF-8
}

// wholeRunes removes a rune from the end of which only the beginning is there.
func wholeRunes(ps []Piece) []Piece {
	if len(ps) == 0 {
		return nil
	}
	p := &ps[len(ps)-1]
	for n := 1; n < utf8.UTFMax && n <= len(p.Text); n++ {
		tail := p.Text[len(p.Text)-n:]
		if !utf8.RuneStart(tail[0]) {
			continue
		}
		if !utf8.FullRune(tail) {
			p.Text = p.Text[:len(p.Text)-n]
		}
		break
	}
	if len(p.Text) == 0 {
		return ps[:len(ps)-1]
	}
	return ps
}

// Closes reports whether a record whose Entry.Closes is pattern closes the item.
func Closes(pattern, item string) bool {
	if pattern == item {
		return pattern != ""
	}
	return strings.HasSuffix(pattern, ".") && strings.HasPrefix(item, pattern)
}

// A scope is guarded by the log's mutex.
type scope struct {
	log    *Log
	name   string
	sealed bool
	closed []string // what was closed since it was opened, so that it stays closed
}

// Write implements Scope.
func (s *scope) Write(name, tag, text string) bool {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	it := s.item(name)
	if it == nil {
		return false
	}

	if text != "" {
		it.add(tag, text)
		l.wrote(it, len(text))
		l.wakeReaders()
	}
	return true
}

// item returns the item to write to, or nil if it must not be written to.
func (s *scope) item(name string) *Item {
	if s.sealed || s.log.phase != Running {
		return nil
	}
	if it := s.log.byName[name]; it != nil {
		if it.closedBy != 0 {
			return nil
		}
		return it
	}
	if slices.ContainsFunc(s.closed, func(p string) bool { return Closes(p, name) }) {
		return nil
	}
	return s.log.addItem(name, s.name)
}

// Seal implements Scope.
func (s *scope) Seal() {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	s.sealed = true
	s.closed = nil
	l.scopes = slices.DeleteFunc(l.scopes, func(o *scope) bool { return o == s })
}

// remember notes that pattern was closed. One pattern may stand for many names,
// which keeps the list of a scope short however long it lives.
func (s *scope) remember(pattern string) {
	if slices.ContainsFunc(s.closed, func(p string) bool { return Closes(p, pattern) }) {
		return
	}
	s.closed = slices.DeleteFunc(s.closed, func(p string) bool { return Closes(pattern, p) })
	s.closed = append(s.closed, pattern)
}
