package edit

import (
	"unicode"
	"unicode/utf8"
)

// nextPos returns the place behind the cluster at a place.
func (b *Buffer) nextPos(at Pos) Pos {
	text := b.Line(at.Line)
	if at.Off < len(text) {
		c, _ := b.cluster(text[at.Off:])
		return Pos{at.Line, at.Off + len(c)}
	}
	if at.Line+1 < len(b.lines) {
		return Pos{at.Line + 1, 0}
	}
	return at
}

// prevPos returns the place before the cluster that ends at a place.
func (b *Buffer) prevPos(at Pos) Pos {
	if at.Off == 0 {
		if at.Line == 0 {
			return at
		}
		return Pos{at.Line - 1, len(b.lines[at.Line-1].text)}
	}
	text := b.lines[at.Line].text
	if at.Off == 1 || printable(text[at.Off-1]) && printable(text[at.Off-2]) {
		return Pos{at.Line, at.Off - 1}
	}
	off, last := b.safe(text, at.Off-1), 0
	for off < at.Off {
		c, _ := b.cluster(text[off:])
		last, off = off, off+len(c)
	}
	return Pos{at.Line, last}
}

// class says what kind of character stands behind a place: words are made of one kind.
type class int

const (
	blank class = iota
	word
	sign
)

func (b *Buffer) class(at Pos) class {
	text := b.Line(at.Line)
	if at.Off >= len(text) {
		return blank
	}
	switch r, _ := utf8.DecodeRuneInString(text[at.Off:]); {
	case unicode.IsSpace(r):
		return blank
	case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || isFold(r):
		return word
	}
	return sign
}

// back goes back from a place while the cluster before it is one of those.
func (b *Buffer) back(at Pos, while func(class) bool) Pos {
	for {
		prev := b.prevPos(at)
		if prev == at || !while(b.class(prev)) {
			return at
		}
		at = prev
	}
}

func (b *Buffer) forth(at Pos, while func(class) bool) Pos {
	for {
		next := b.nextPos(at)
		if next == at || !while(b.class(at)) {
			return at
		}
		at = next
	}
}

func isWord(c class) bool   { return c == word }
func noWord(c class) bool   { return c != word }
func isBlank(c class) bool  { return c == blank }
func notBlank(c class) bool { return c != blank }

func (b *Buffer) wordLeft() Pos  { return b.back(b.back(b.cur, noWord), isWord) }
func (b *Buffer) wordRight() Pos { return b.forth(b.forth(b.cur, noWord), isWord) }

func (b *Buffer) move(to Pos) {
	b.seal()
	b.goal = 0
	b.cur = to
}

// erase deletes up to a place without keeping it.
func (b *Buffer) erase(to Pos) {
	kind := other
	if to.before(b.cur) {
		kind = erasing
	}
	b.replace(kind, b.cur, to, "")
}

// cut deletes up to a place and keeps it for yank.
func (b *Buffer) cut(to Pos) {
	b.init()
	from := b.cur
	if to.before(from) {
		from, to = to, from
	}
	if from == to {
		return
	}
	b.kill = b.slice(from, to)
	b.Replace(from, to, "")
}

// killLine cuts to the end of the line, or the newline if there is nothing else.
func (b *Buffer) killLine() {
	to := Pos{b.cur.Line, len(b.Line(b.cur.Line))}
	if to == b.cur {
		to = b.nextPos(to)
	}
	b.cut(to)
}

// transpose swaps the clusters around the cursor, as Emacs does.
func (b *Buffer) transpose() {
	mid := b.cur
	if mid.Off == len(b.Line(mid.Line)) {
		mid = b.prevPos(mid)
	}
	left, right := b.prevPos(mid), b.nextPos(mid)
	if left.Line != mid.Line || right.Line != mid.Line || left == mid || right == mid {
		return
	}
	b.Replace(left, right, b.slice(mid, right)+b.slice(left, mid))
}
