package edit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// reference is the editor as one would write it without a thought for cost: one
// string, one offset, and all clusters found again for every key.
type reference struct {
	text string
	cur  int
	kill string
}

// places returns all places between two clusters.
func (r *reference) places() []int {
	all := []int{0}
	for off := 0; off < len(r.text); {
		c, _ := ansi.FirstGraphemeCluster(r.text[off:], ansi.GraphemeWidth)
		if i := strings.IndexFunc(c, isFold); i == 0 {
			_, n := utf8.DecodeRuneInString(c)
			c = c[:n]
		} else if i > 0 {
			c = c[:i]
		}
		off += len(c)
		all = append(all, off)
	}
	return all
}

func (r *reference) prev(at int) int {
	best := 0
	for _, p := range r.places() {
		if p < at {
			best = p
		}
	}
	return best
}

func (r *reference) next(at int) int {
	for _, p := range r.places() {
		if p > at {
			return p
		}
	}
	return at
}

func (r *reference) replace(from, to int, s string) {
	if to < from {
		from, to = to, from
	}
	r.text = r.text[:from] + s + r.text[to:]
	r.cur = from + len(s)
	for _, p := range r.places() {
		if p >= r.cur {
			r.cur = p
			return
		}
	}
}

func (r *reference) cut(to int) {
	from := r.cur
	if to < from {
		from, to = to, from
	}
	if from != to {
		r.kill = r.text[from:to]
		r.replace(from, to, "")
	}
}

func (r *reference) lineStart() int { return strings.LastIndexByte(r.text[:r.cur], '\n') + 1 }

func (r *reference) lineEnd() int {
	if i := strings.IndexByte(r.text[r.cur:], '\n'); i >= 0 {
		return r.cur + i
	}
	return len(r.text)
}

func (r *reference) is(at int, what string) bool {
	c, _ := utf8.DecodeRuneInString(r.text[at:])
	isSpace := unicode.IsSpace(c)
	isWord := c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) || isFold(c)
	switch what {
	case "word":
		return isWord
	case "no word":
		return !isWord
	case "space":
		return isSpace
	}
	return !isSpace
}

func (r *reference) back(at int, what string) int {
	for at > 0 && r.is(r.prev(at), what) {
		at = r.prev(at)
	}
	return at
}

func (r *reference) forth(at int, what string) int {
	for at < len(r.text) && r.is(at, what) {
		at = r.next(at)
	}
	return at
}

func (r *reference) transpose() {
	mid := r.cur
	if mid == r.lineEnd() {
		mid = r.prev(mid)
	}
	left, right := r.prev(mid), r.next(mid)
	if left == mid || right == mid || strings.Contains(r.text[left:right], "\n") || mid < r.lineStart() {
		return
	}
	r.replace(left, right, r.text[mid:right]+r.text[left:mid])
}

// key does one of the keys that the reference knows.
func (r *reference) key(name string) {
	switch name {
	case "left":
		r.cur = r.prev(r.cur)
	case "right":
		r.cur = r.next(r.cur)
	case "alt+b":
		r.cur = r.back(r.back(r.cur, "no word"), "word")
	case "alt+f":
		r.cur = r.forth(r.forth(r.cur, "no word"), "word")
	case "home":
		r.cur = r.lineStart()
	case "end":
		r.cur = r.lineEnd()
	case "ctrl+home":
		r.cur = 0
	case "ctrl+end":
		r.cur = len(r.text)
	case "backspace":
		r.replace(r.prev(r.cur), r.cur, "")
	case "delete":
		r.replace(r.cur, r.next(r.cur), "")
	case "ctrl+w":
		r.cut(r.back(r.back(r.cur, "space"), "no space"))
	case "alt+backspace":
		r.cut(r.back(r.back(r.cur, "no word"), "word"))
	case "alt+d":
		r.cut(r.forth(r.forth(r.cur, "no word"), "word"))
	case "ctrl+u":
		r.cut(r.lineStart())
	case "ctrl+k":
		to := r.lineEnd()
		if to == r.cur {
			to = r.next(to)
		}
		r.cut(to)
	case "ctrl+y":
		r.replace(r.cur, r.cur, r.kill)
	case "ctrl+t":
		r.transpose()
	}
}
