package web

import (
	"net/http"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/search"
	"github.com/fermata-agent/fermata/internal/surface/web/render"
	p "github.com/fermata-agent/fermata/protocol"
)

type listAnswer struct {
	Conversations []engine.Summary `json:"conversations"`
	Next          string           `json:"next,omitempty"`
	Unread        []string         `json:"unread,omitempty"` // what may be missing, and why
	HTML          string           `json:"html,omitempty"`   // what a page shows of them, if it asked for that
}

// states are what a list can be filtered by.
var states = map[string]func(s engine.Summary, phase func(engine.Summary) string) bool{
	"": func(engine.Summary, func(engine.Summary) string) bool { return true },
	"waiting": func(s engine.Summary, phase func(engine.Summary) string) bool {
		return isOpen(s) && (phase(s) == "waiting" || phase(s) == "held") || s.Returned > 0
	},
	"running": func(s engine.Summary, phase func(engine.Summary) string) bool {
		return isOpen(s) && phase(s) == "working"
	},
	"failed": func(s engine.Summary, _ func(engine.Summary) string) bool {
		return s.Ended == p.Failed || s.Ended == p.Crashed
	},
}

// isOpen reports whether a turn has begun and not ended.
func isOpen(s engine.Summary) bool { return s.Turns > 0 && s.Ended == "" }

// maxListed is how many conversations are looked at for one answer: the next one continues from there.
const maxListed = 2000

// list lists conversations: all, or those that have a text, a state or a directory.
func (s *Server) list(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	limit, ok := number(w, q.Get("limit"), "limit", 200)
	if !ok {
		return
	}
	flags := map[string]bool{}
	for _, name := range []string{"archived", "html"} {
		if v := q.Get(name); v != "" && v != "true" && v != "false" {
			refuse(w, http.StatusBadRequest, "field", name+" must be true or false")
			return
		}
		flags[name] = q.Get(name) == "true"
	}
	is, ok := states[q.Get("state")]
	if !ok {
		refuse(w, http.StatusBadRequest, "field", "state must be waiting, running or failed")
		return
	}
	text := strings.TrimSpace(q.Get("q"))
	o := engine.ListOptions{Limit: limit, Cursor: q.Get("cursor"), Cwd: q.Get("cwd"), Archived: flags["archived"]}
	out := listAnswer{Conversations: []engine.Summary{}}
	for looked := 0; ; {
		page, err := s.o.Engine.List(r.Context(), o)
		if err != nil {
			refuse(w, http.StatusBadRequest, "list", err.Error())
			return
		}
		for _, c := range page.Items {
			if is(c, s.lobby.Phase) && (text == "" || search.Matches(c, text)) {
				out.Conversations = append(out.Conversations, c)
			}
		}
		out.Unread = page.Unread
		looked += len(page.Items)
		o.Cursor, out.Next = page.Next, page.Next
		if page.Next == "" || len(out.Conversations) >= max(limit, 25) || looked >= maxListed {
			break
		}
	}
	if flags["html"] {
		for _, line := range out.Unread {
			if q.Get("cursor") == "" { // a page that shows more has them already
				out.HTML += render.Unread(line)
			}
		}
		for _, c := range out.Conversations {
			out.HTML += render.Row(c, s.lobby.Phase(c))
		}
	}
	answer(w, http.StatusOK, out)
}
