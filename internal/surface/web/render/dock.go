package render

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fermata-agent/fermata/internal/safetext"
	t "github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Dock is what stands between the transcript and the composer: what waits for a person.
type Dock struct {
	Approvals  string `json:"approvals"`
	Queue      string `json:"queue"`
	Returned   string `json:"returned"`
	Background string `json:"background"`
}

// NewDock makes the dock of a conversation. asking are the items that wait for a person.
func NewDock(id p.ConversationID, tr *t.Transcript, asking []*t.Item) Dock {
	return Dock{approvals(id, asking, tr.Settings.Cwd) + questions(id, asking), queue(tr.Inputs), returned(tr.Undelivered()), background(tr.Running)}
}

// answers are those that the terminal UI offers as well.
var answers = []struct {
	decision p.Decision
	key      lit
	label    string
	class    lit
}{
	{p.Approved, "y", "Yes", "yes"},
	{p.ApprovedForSession, "a", "Yes, for this session", ""},
	{p.Denied, "n", "No, and say why", ""},
	{p.Abort, "s", "Stop the turn", "danger"},
}

func approvals(id p.ConversationID, asking []*t.Item, dir string) string {
	h := &builder{}
	for i, it := range asking {
		if it.Approval == nil {
			continue
		}
		h.raw(`<section class="approval" role="group" aria-label="Approval"`)
		h.attr("data-call", it.Approval.Call.String())
		h.attr("data-shown", ShownApproval(id, it, dir))
		h.raw(">")
		title := "Allow this command?"
		switch it.Approval.Kind {
		case p.ApprovePatch:
			title = "Allow these changes?"
		case p.ApproveTool:
			title = "Allow this call?"
		}
		if len(asking) > 1 {
			title += fmt.Sprintf(" (%d of %d)", i+1, len(asking))
		}
		h.el("h2", "", title)
		h.Question(it, dir)
		h.raw(`<div class="answers">`)
		for _, a := range answers {
			h.raw(`<button type="button" data-act="approve"`)
			h.attr("data-decision", string(a.decision))
			h.attr("data-call", it.Approval.Call.String())
			h.raw(` class="`)
			h.raw(a.class)
			h.raw(`" data-key="`)
			h.raw(a.key)
			h.raw(`"><kbd aria-hidden="true">`)
			h.raw(a.key)
			h.raw(`</kbd> `)
			h.text(a.label)
			h.end("button")
		}
		h.raw(`</div></section>`)
	}
	return h.String()
}

// Question adds what a person is asked to allow. All of it is shown, and nothing is hidden by
// characters that cannot be seen.
func (h *builder) Question(it *t.Item, dir string) {
	a := it.Approval
	h.raw(`<div class="judge" tabindex="0">`)
	switch {
	case a.Kind == p.ApprovePatch:
		h.changes(it.Changes, a.Cwd, Options{Dir: dir, Full: true})
	case a.MCP != nil:
		h.raw(`<pre class="cmd">`)
		h.textf("%s: %s\n%s", safetext.ShowLine(a.MCP.Server), safetext.ShowLine(a.MCP.Name), safetext.Show(it.Arguments))
		h.end("pre")
	default:
		h.raw(`<pre class="cmd">`)
		h.shell(safetext.Show(t.CommandLine(a.Command)))
		h.end("pre")
	}
	h.raw("</div>")
	if a.Cwd != "" {
		h.el("div", "cwd", "in "+safetext.ShowLine(a.Cwd))
	}
	if a.Reason != "" {
		h.el("div", "why", "why: "+safetext.Show(a.Reason))
	}
}

// Question makes the HTML of what one approval is about.
func Question(it *t.Item, dir string) string {
	h := &builder{}
	h.Question(it, dir)
	return h.String()
}

var modes = map[p.WhenBusy]string{p.Steer: "steering", p.Queue: "queued", p.Replace: "replacing"}

func queue(inputs []p.ReturnedInput) string {
	h := &builder{}
	for _, in := range inputs {
		id := strconv.Itoa(int(in.Input))
		h.raw(`<li`)
		h.attr("data-input", id)
		h.raw(">")
		h.el("span", "mode", modes[in.Mode])
		h.raw(" ")
		h.el("span", "words", safetext.Clean(p.Written(in.Content)))
		h.button("edit-input", "Edit", "data-input", id)
		h.button("delete-input", "Delete", "data-input", id)
		h.end("li")
	}
	return h.String()
}

// returned makes the list of messages that were not delivered. One with images can only be sent as it is.
func returned(inputs []p.ReturnedInput) string {
	h := &builder{}
	for _, in := range inputs {
		id := strconv.Itoa(int(in.Input))
		h.raw(`<li`)
		h.attr("data-input", id)
		h.raw(">")
		h.el("span", "mode", "not delivered")
		h.raw(" ")
		h.el("span", "words", safetext.Clean(p.Written(in.Content)))
		h.button("send-returned", "Send", "data-input", id)
		if !slices.ContainsFunc(in.Content, func(c p.Content) bool { return c.Type == p.ContentImage }) {
			h.button("edit-returned", "Edit", "data-input", id)
		}
		h.button("drop-returned", "Drop", "data-input", id)
		h.end("li")
	}
	return h.String()
}

func background(running []p.BackgroundStarted) string {
	h := &builder{}
	for _, b := range running {
		id := strconv.Itoa(int(b.ID))
		h.raw(`<li>`)
		h.el("span", "mode", "&"+id)
		h.raw(" ")
		h.el("code", "words", cut(safetext.ShowLine(t.CommandLine(b.Command)), 300))
		h.button("kill", "Kill", "data-background", id)
		h.end("li")
	}
	return h.String()
}

func (h *builder) button(act lit, label string, name lit, value string) {
	h.raw(`<button type="button" data-act="`)
	h.raw(act)
	h.raw(`"`)
	h.attr(name, value)
	h.raw(">")
	h.text(label)
	h.end("button")
}
