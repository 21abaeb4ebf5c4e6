package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/fermata-agent/fermata/internal/safetext"
	t "github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A field is what an MCP server wants to know.
type field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	Default     any      `json:"default"`
}

// questions makes the HTML of what MCP servers ask.
func questions(id p.ConversationID, items []*t.Item) string {
	h := &builder{}
	for _, it := range items {
		for _, q := range it.Questions {
			h.elicitation(id, q)
		}
	}
	return h.String()
}

func (h *builder) elicitation(id p.ConversationID, q *p.ElicitationRequested) {
	h.raw(`<section class="approval" role="group" aria-label="Question"`)
	h.attr("data-call", q.Call.String())
	h.attr("data-number", strconv.Itoa(q.Number))
	h.attr("data-shown", ShownElicitation(id, q))
	h.raw(">")
	h.asks(q)
	h.raw(`<div class="answers">`)
	h.button("elicit", "Answer", "data-action", string(p.ElicitationAccept))
	h.button("elicit", "Decline", "data-action", string(p.ElicitationDecline))
	h.button("elicit", "Cancel", "data-action", string(p.ElicitationCancel))
	h.raw("</div></section>")
}

// asks adds what a server wants to know.
func (h *builder) asks(q *p.ElicitationRequested) {
	h.raw("<h2>")
	h.text(safetext.ShowLine(q.Server) + " asks")
	h.raw(`</h2><div class="judge" tabindex="0">`)
	h.el("div", "text", safetext.Show(q.Message))
	if q.URL != "" {
		w := &writer{h: h}
		w.link(q.URL, func() { h.text(safetext.ShowLine(q.URL)) })
	}
	h.raw("</div>")
	h.fields(q.Schema)
}

// fields adds one for each property of a schema.
func (h *builder) fields(raw json.RawMessage) {
	var schema struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	if json.Unmarshal(raw, &schema) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := schema.Properties[name]
		label := f.Title
		if label == "" {
			label = name
		}
		if !slices.Contains(schema.Required, name) {
			label += " (optional)"
		}
		h.raw("<label>")
		h.text(safetext.ShowLine(label))
		if f.Description != "" {
			h.el("span", "cwd", " "+safetext.ShowLine(f.Description))
		}
		switch {
		case len(f.Enum) > 0 || f.Type == "boolean":
			h.choices(name, f)
		case f.Type == "number" || f.Type == "integer":
			h.raw(`<input class="field" inputmode="decimal" data-type="number"`)
			h.attr("name", name)
			h.raw(">")
		default:
			h.raw(`<input class="field" data-type="string"`)
			h.attr("name", name)
			h.raw(">")
		}
		h.raw("</label>")
	}
}

func (h *builder) choices(name string, f field) {
	kind := "string"
	if f.Type == "boolean" {
		kind, f.Enum = "boolean", []string{"true", "false"}
	}
	h.raw(`<select class="field"`)
	h.attr("data-type", kind)
	h.attr("name", name)
	h.raw(`><option value=""></option>`)
	for _, v := range f.Enum {
		h.raw("<option")
		h.attr("value", v)
		h.raw(">")
		h.text(safetext.ShowLine(v))
		h.raw("</option>")
	}
	h.raw("</select>")
}
