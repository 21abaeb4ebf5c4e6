package exportcmd

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/web/render"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

//go:embed export.css
var style string

// writeHTML writes one file that needs nothing else. It has no scripts, and says so to the browser.
func writeHTML(w io.Writer, c conversation) error {
	var b strings.Builder
	escape := func(text string) string { return html.EscapeString(safetext.Line(text)) }
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n")
	b.WriteString("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n")
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n%s</style>\n<header><h1>%[1]s</h1>\n", escape(c.title()), style)
	fmt.Fprintf(&b, "<p>%s · %s · conversation %s</p></header>\n", escape(c.Settings.Cwd), escape(c.Settings.Model), escape(string(c.id)))
	turn := p.TurnID(0)
	for _, it := range c.Items {
		open := isOpen(it)
		if open {
			it.Status = transcript.Interrupted // else its text is left out, to be streamed
		}
		text := render.Item(it, render.Options{Dir: c.Settings.Cwd, Full: true})
		if text == "" {
			continue
		}
		if it.Turn != turn && it.Turn != 0 { // what happened between turns goes below the one before
			turn = it.Turn
			fmt.Fprintf(&b, "<h2>Turn %d</h2>\n", turn)
		}
		b.WriteString(text + "\n")
		if open {
			b.WriteString("<p>not finished</p>\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
