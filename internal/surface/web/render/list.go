package render

import (
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	p "github.com/fermata-agent/fermata/protocol"
)

var phaseClasses = map[string]lit{"working": "working", "waiting": "waiting", "held": "held"}

// Unread makes the HTML of a line of the list that says what is missing in it, and why.
func Unread(why string) string {
	h := &builder{}
	h.el("li", "unread", safetext.ShowLine(why))
	return h.String()
}

// Row makes the HTML of a conversation in the list.
func Row(s engine.Summary, phase string) string {
	h := &builder{}
	h.raw(`<li><a class="row `)
	h.raw(phaseClasses[phase])
	h.raw(`"`)
	h.attr("href", "#/c/"+string(s.ID))
	h.attr("data-conversation", string(s.ID))
	h.attr("data-cwd", s.Cwd)
	if s.Archived {
		h.attr("data-archived", "true")
	}
	h.raw(">")
	title := safetext.ShowLine(cut(s.Title, 160))
	if title == "" {
		title = "untitled"
	}
	h.el("b", "", title)
	word := phase
	if phase == "ended" && s.Ended != "" && s.Ended != p.Completed {
		word = string(s.Ended)
	}
	h.raw(`<span class="meta">`)
	if word != "ended" && word != "new" {
		h.el("em", "", word)
		h.raw(" · ")
	}
	if s.Returned > 0 {
		h.el("em", "", humanize.Count(s.Returned, "message")+" returned")
		h.raw(" · ")
	}
	h.text(safetext.ShowLine(s.Cwd))
	h.raw(" · <time")
	h.attr("datetime", s.Updated.UTC().Format(time.RFC3339))
	h.raw("></time></span>")
	h.raw("</a></li>")
	return h.String()
}
