// Package render makes HTML of what a transcript shows. It is escaped by construction: what is not a
// constant of this package gets into the HTML only through [builder.text] and
// [builder.attr], and nothing that others wrote becomes a tag, an attribute's name or an address that a
// browser would load or run.
//
// Start with [Item]; [Markdown] is for what models write.
package render

import (
	"fmt"
	"html"
	"strings"
)

// A lit is HTML that is a constant of this package. Do not convert to it.
type lit string

// A builder collects HTML.
type builder struct{ b strings.Builder }

func (h *builder) raw(s lit) { h.b.WriteString(string(s)) }

func (h *builder) text(s string) { h.b.WriteString(html.EscapeString(s)) }

func (h *builder) textf(format string, args ...any) { h.text(fmt.Sprintf(format, args...)) }

// attr adds an attribute to the tag that was begun.
func (h *builder) attr(name lit, value string) {
	h.raw(" ")
	h.raw(name)
	h.raw(`="`)
	h.text(value)
	h.raw(`"`)
}

// el adds an element with a class that holds only text.
func (h *builder) el(tag, class lit, text string) {
	h.open(tag, class)
	h.text(text)
	h.end(tag)
}

func (h *builder) open(tag, class lit) {
	h.raw("<")
	h.raw(tag)
	if class != "" {
		h.raw(` class="`)
		h.raw(class)
		h.raw(`"`)
	}
	h.raw(">")
}

func (h *builder) end(tag lit) {
	h.raw("</")
	h.raw(tag)
	h.raw(">")
}

func (h *builder) String() string { return h.b.String() }

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
