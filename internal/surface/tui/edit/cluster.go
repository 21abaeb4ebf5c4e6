package edit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/safetext"
)

// A fold stands in the text as one character of a private area, so that every
// motion and deletion takes it as a whole. Clean keeps such characters of other
// origin out; this end of the area is one that icon fonts leave alone.
const (
	firstFold = '\U00108000'
	lastFold  = '\U0010FFFD'
)

// tabWidth is how wide a tab is drawn, wherever it stands.
const tabWidth = 4

func isFold(r rune) bool { return r >= firstFold && r <= lastFold }

func printable(c byte) bool { return c >= 0x20 && c < 0x7f }

// cluster returns the first cluster of s, which is not empty, and its width.
func (b *Buffer) cluster(s string) (string, int) {
	if printable(s[0]) && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], 1
	}
	if s[0] == '\t' {
		return s[:1], tabWidth
	}
	r, n := utf8.DecodeRuneInString(s)
	if isFold(r) {
		return s[:n], safetext.Width(b.fold(r).Label)
	}
	c, w := safetext.Cluster(s)
	if i := strings.IndexFunc(c, isFold); i > 0 { // a fold joins no cluster
		c = c[:i]
		w = safetext.Width(c)
	}
	return c, w
}

// safe returns a place before off where a cluster surely begins.
func (b *Buffer) safe(text string, off int) int {
	for i := off - 1; i > 0; i-- {
		if printable(text[i-1]) && printable(text[i]) {
			return i
		}
	}
	return 0
}

func (b *Buffer) fold(r rune) Fold {
	if i := int(r - firstFold); i < len(b.folds) {
		return b.folds[i]
	}
	return Fold{Label: "\uFFFD"}
}

// InsertFold writes a fold at the cursor. Beyond 32,000 folds it writes the text.
func (b *Buffer) InsertFold(f Fold) {
	r := firstFold + rune(len(b.folds))
	if !isFold(r) {
		b.Insert(f.Text)
		return
	}
	b.folds = append(b.folds, f)
	b.Replace(b.cur, b.cur, string(r))
}

// Know makes Refold find a fold that was not written here, or something else by
// the label of one that was.
func (b *Buffer) Know(f Fold) {
	if i := slices.IndexFunc(b.folds, func(old Fold) bool { return old.Label == f.Label }); i >= 0 {
		b.folds[i] = f
	} else if isFold(firstFold + rune(len(b.folds))) {
		b.folds = append(b.folds, f)
	}
}

// Folds returns how many folds were ever made.
func (b *Buffer) Folds() int { return len(b.folds) }

// Expand replaces the folds in a text that came from the buffer.
func (b *Buffer) Expand(s string, by func(Fold) string) string {
	if !strings.ContainsFunc(s, isFold) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if isFold(r) {
			out.WriteString(by(b.fold(r)))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Refold puts folds back where their texts stand in s, the longest first; for an
// image that is its label.
func (b *Buffer) Refold(s string) string {
	s = Clean(s)
	order := make([]int, len(b.folds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return len(b.folds[j].Text) - len(b.folds[i].Text) })
	for _, i := range order {
		f := b.folds[i]
		if f.Image {
			f.Text = f.Label
		}
		s = strings.ReplaceAll(s, f.Text, string(firstFold+rune(i)))
	}
	return s
}

// Clean makes a text of any origin fit to be edited and drawn: valid, with lines
// that end in a newline, without escape sequences and control characters, and
// without characters that only a fold may use.
func Clean(s string) string {
	s = tidy(s)
	if !strings.ContainsFunc(s, isFold) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isFold(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// tidy is Clean for a text that may hold folds.
func tidy(s string) string {
	if strings.IndexFunc(s, unfit) < 0 && utf8.ValidString(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsRune(s, 0x1b) {
		s = ansi.Strip(s)
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case unfit(r):
			return -1
		}
		return r
	}, s)
}

func unfit(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u2028' || r == '\u2029'
}
