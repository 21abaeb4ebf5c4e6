package edit

import "strings"

// record remembers a change, as a part of the last one where a person would
// think of both as one.
func (b *Buffer) record(c change) {
	b.next = nil
	if n := len(b.past); n > 0 && b.past[n-1].takes(c) {
		last := &b.past[n-1]
		last.after = c.after
		if c.kind == typing {
			last.new += c.new
			return
		}
		last.at = c.at
		last.old = c.old + last.old
		return
	}
	b.past = append(b.past, c)
	if len(b.past) >= 2*maxUndo {
		b.past = append(b.past[:0:0], b.past[len(b.past)-maxUndo:]...)
	}
}

// takes reports whether c is one step with the change before it: more of the
// same word, or more of the same erasing.
func (a *change) takes(c change) bool {
	if a.kind != c.kind || c.before != a.after {
		return false
	}
	switch c.kind {
	case typing:
		wordEnded := strings.HasSuffix(a.new, " ") || strings.HasSuffix(a.new, "\n")
		return c.old == "" && a.old == "" && extent(a.at, a.new) == c.at && (!wordEnded || c.new == " ")
	case erasing:
		return c.new == "" && a.new == "" && extent(c.at, c.old) == a.at
	}
	return false
}

// extent returns where s ends when it begins at a place.
func extent(at Pos, s string) Pos {
	n := strings.Count(s, "\n")
	if n == 0 {
		return Pos{at.Line, at.Off + len(s)}
	}
	return Pos{at.Line + n, len(s) - strings.LastIndexByte(s, '\n') - 1}
}

// seal ends a step of undo: what is typed after a motion is a separate step.
func (b *Buffer) seal() {
	if n := len(b.past); n > 0 {
		b.past[n-1].kind = sealed
	}
}

// Undo takes the last step back. It reports whether there was one.
func (b *Buffer) Undo() bool {
	n := len(b.past)
	if n == 0 {
		return false
	}
	c := b.past[n-1]
	b.past = b.past[:n-1]
	b.splice(c.at, extent(c.at, c.new), c.old)
	b.cur, b.goal = c.before, 0
	c.kind = sealed
	b.next = append(b.next, c)
	return true
}

// Redo does again what Undo reverted. It reports whether there was anything.
func (b *Buffer) Redo() bool {
	n := len(b.next)
	if n == 0 {
		return false
	}
	c := b.next[n-1]
	b.next = b.next[:n-1]
	b.splice(c.at, extent(c.at, c.old), c.new)
	b.cur, b.goal = c.after, 0
	b.past = append(b.past, c)
	return true
}
