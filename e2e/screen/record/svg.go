package main

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The picture: the size of a character, and the colours of the terminal.
const (
	charWidth  = 8.4
	lineHeight = 17
	fontSize   = 14
	margin     = 16
	background = "#14161b"
	foreground = "#d6d9e0"
)

// The first sixteen colours of the palette; the others look the same everywhere.
var palette = [...]string{
	"#2b303b", "#e06c75", "#98c379", "#d9a05b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
	"#6b7280", "#ef8b92", "#b3d98f", "#e5c07b", "#84c1ff", "#d7a1ea", "#7fd0da", "#ffffff",
}

// A look is how characters are drawn.
type look struct {
	front, back                             string
	bold, faint, italic, underline, reverse bool
}

// svg draws a screen as tmux prints it: lines of text with colours. All characters are of one width.
func svg(screen string) []byte {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	width, height := columns*charWidth+2*margin, len(lines)*lineHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="fermata in a terminal">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="10" fill="%s"/>`+"\n", background)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d" fill="%s">`+"\n", fontSize, foreground)
	now := look{}
	for row, line := range lines {
		column := 0
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				codes, after, _ := strings.Cut(rest, "m")
				now.set(codes)
				line = after
				continue
			}
			text, _, _ := strings.Cut(line, "\x1b")
			text = text[:max(len(text), 1)]
			line = line[len(text):]
			cells := utf8.RuneCountInString(text)
			now.draw(&b, text, column, row, cells)
			column += cells
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// draw draws a text that looks the same all over.
func (l look) draw(b *bytes.Buffer, text string, column, row, cells int) {
	x, y := margin+float64(column)*charWidth, margin+row*lineHeight
	front, back := l.front, l.back
	if l.reverse {
		front, back = or(back, background), or(front, foreground)
	}
	if back != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, float64(cells)*charWidth, lineHeight, back)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	lead := len(text) - len(strings.TrimLeft(text, " "))
	text = strings.TrimSpace(text)
	x += float64(lead) * charWidth
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"`, x, y+lineHeight-5, float64(utf8.RuneCountInString(text))*charWidth)
	for _, a := range []struct {
		on   bool
		text string
	}{
		{front != "", fmt.Sprintf(` fill="%s"`, front)},
		{l.bold, ` font-weight="bold"`},
		{l.italic, ` font-style="italic"`},
		{l.underline, ` text-decoration="underline"`},
		{l.faint, ` opacity="0.6"`},
	} {
		if a.on {
			b.WriteString(a.text)
		}
	}
	fmt.Fprintf(b, ">%s</text>\n", strings.ReplaceAll(html.EscapeString(text), "  ", "\u00a0\u00a0"))
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// set takes the codes of a sequence that changes the look.
func (l *look) set(codes string) {
	list := strings.FieldsFunc(codes, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		list = []string{"0"}
	}
	for i := 0; i < len(list); i++ {
		n, _ := strconv.Atoi(list[i])
		switch {
		case n == 0:
			*l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.faint = true
		case n == 3:
			l.italic = true
		case n == 4:
			l.underline = true
		case n == 7:
			l.reverse = true
		case n == 22:
			l.bold, l.faint = false, false
		case n == 23:
			l.italic = false
		case n == 24:
			l.underline = false
		case n == 27:
			l.reverse = false
		case n == 38 && i+2 < len(list) && list[i+1] == "5":
			l.front = indexed(list[i+2])
			i += 2
		case n == 48 && i+2 < len(list) && list[i+1] == "5":
			l.back = indexed(list[i+2])
			i += 2
		case n == 39:
			l.front = ""
		case n == 49:
			l.back = ""
		case n >= 30 && n < 38:
			l.front = palette[n-30]
		case n >= 90 && n < 98:
			l.front = palette[n-82]
		}
	}
}

// indexed is a colour of the palette of 256.
func indexed(number string) string {
	n, _ := strconv.Atoi(number)
	switch {
	case n < len(palette):
		return palette[n]
	case n >= 232:
		v := 8 + 10*(n-232)
		return fmt.Sprintf("#%02x%02x%02x", v, v, v)
	}
	level := func(k int) int {
		if k == 0 {
			return 0
		}
		return 55 + 40*k
	}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}
