package history

import (
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// reduce takes out what a service refuses.
func (h *History) reduce(part p.HistoryPart) {
	h.decode()
	h.closeGroup()
	switch part {
	case p.PartReasoning:
		h.dropReasoning()
	case p.PartImages:
		h.dropImages()
	case p.PartOutputs:
		h.shortenOutputs()
	}
	h.base = min(h.base, h.size)
}

// dropReasoning leaves out the reasoning, and sends back as plain text what was kept
// in a service's own form.
func (h *History) dropReasoning() {
	var kept []*entry
	for _, e := range h.entries {
		if e.item.Kind == p.PromptReasoning {
			continue
		}
		if len(e.item.Raw.JSON) > 0 {
			e = e.with(func(it *p.PromptItem) { it.Raw = p.Raw{} })
		}
		kept = append(kept, e)
	}
	h.replace(kept)
}

// with returns a copy of the entry with a changed item.
func (e *entry) with(change func(*p.PromptItem)) *entry {
	it := e.item
	item := &p.PromptItem{
		Kind: it.Kind, Content: it.Content, Text: it.Text, Call: it.Call, WireID: it.WireID,
		CallKind: it.CallKind, Name: it.Name, Arguments: it.Arguments, Raw: it.Raw,
	}
	change(item)
	return &entry{turn: e.turn, response: e.response, item: item, own: e.own, id: e.id}
}

// dropImages puts a line of text in the place of each image.
func (h *History) dropImages() {
	entries := slices.Clone(h.entries)
	for i, e := range entries {
		if !slices.ContainsFunc(e.item.Content, isImage) {
			continue
		}
		entries[i] = e.with(func(it *p.PromptItem) {
			it.Content = slices.Clone(it.Content)
			for j, c := range it.Content {
				if isImage(c) {
					it.Content[j] = p.Content{Type: p.ContentText, Text: "[an image was here; the model service did not take it]"}
				}
			}
			if it.Kind == p.PromptOutput { // outputs are text with images
				it.Text += "\n" + p.PlainText(it.Content)
				it.Content = nil
			}
		})
	}
	h.replace(entries)
}

func isImage(c p.Content) bool { return c.Type == p.ContentImage }

// shortenOutputs shortens all outputs but the latest.
func (h *History) shortenOutputs() {
	const most, latest = 1000, 3
	entries := slices.Clone(h.entries)
	seen := 0
	for i, e := range slices.Backward(entries) {
		if e.item.Kind != p.PromptOutput {
			continue
		}
		if seen++; seen <= latest || len(e.item.Text) <= most {
			continue
		}
		h.shortened = true
		entries[i] = e.with(func(it *p.PromptItem) { it.Text = shortenText(it.Text, most, it.Call.String()) })
	}
	h.replace(entries)
}

// switchModel leaves out what only the model that made it understands, if another one
// is asked from now on.
func (h *History) switchModel(to p.Settings) {
	if h.settings.Provider == to.Provider && h.settings.Model == to.Model {
		return
	}
	h.decode()
	if slices.ContainsFunc(h.entries, func(e *entry) bool { return len(e.item.Raw.JSON) > 0 || e.item.Kind == p.PromptReasoning }) {
		h.closeGroup()
		h.dropReasoning()
	}
}
