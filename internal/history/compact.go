package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/prompt"
	p "github.com/fermata-agent/fermata/protocol"
)

// compact puts a summary in the place of everything but the lead and the user's own
// messages, as far as those fit: the first, which says what all is about, and the
// newest. What the user said since the model last spoke comes behind the summary, since it is still to be answered.
func (h *History) compact(turn p.TurnID, b *p.Compacted) {
	h.decode()
	h.closeGroup()
	lead := slices.Clone(h.lead)
	if n := len(lead); n > 0 {
		lead[n-1] = &entry{item: user(prompt.Environment(p.Settings{}, h.settings))}
	}
	h.lead, h.missing, h.compacted = lead, nil, turn
	before, after := h.ownMessages(turn, b.Keep)
	summary := &entry{turn: turn, item: user(h.summaryText(b, len(after) > 0))}
	h.replace(slices.Concat(lead, before, []*entry{summary}, after))
	h.base = h.size
}

// ownMessages are the user's own messages that a compaction keeps, in their order:
// those that the model has answered, or works on, and those it has not seen.
func (h *History) ownMessages(turn p.TurnID, keep int64) (before, after []*entry) {
	answered := 0 // everything before this place has been answered
	for i, e := range h.entries {
		if e.item.Kind != p.PromptUser {
			answered = i + 1
		}
	}
	budget := keep * bytesPerToken
	if keep == 0 { // of an older version: the messages of the turn
		budget = 1 << 62
	}
	first := true
	for i, e := range slices.Backward(h.entries) {
		if !e.own || keep == 0 && e.turn != turn {
			continue
		}
		kept := h.fitKept(e, budget, first)
		if kept == nil {
			continue
		}
		first = false
		budget -= itemSize(kept.item)
		if i >= answered {
			after = append(after, kept)
		} else {
			before = append(before, kept)
		}
	}
	slices.Reverse(before)
	slices.Reverse(after)
	if keep > 0 {
		before = h.withFirst(before, after, keep)
	}
	return before, after
}

// fitKept is a message as it is kept: as it is, shortened if it is the newest, or not at all.
func (h *History) fitKept(e *entry, budget int64, newest bool) *entry {
	if itemSize(e.item) <= budget {
		return e
	}
	if !newest {
		return nil
	}
	return h.shortenEntry(e, budget)
}

// withFirst adds the first message of the conversation, if it is not there.
func (h *History) withFirst(before, after []*entry, keep int64) []*entry {
	i := slices.IndexFunc(h.entries, func(e *entry) bool { return e.own })
	if i < 0 || slices.ContainsFunc(slices.Concat(before, after), func(e *entry) bool { return e.id == h.entries[i].id }) {
		return before
	}
	e, most := h.entries[i], keep*bytesPerToken/4
	if itemSize(e.item) > most {
		e = h.shortenEntry(e, most)
	}
	return append([]*entry{e}, before...)
}

func (h *History) shortenEntry(e *entry, most int64) *entry {
	h.shortened = true
	item := &p.PromptItem{Kind: e.item.Kind, Content: shortenContent(e.item.Content, int(most), e.id)}
	return &entry{turn: e.turn, response: e.response, item: item, own: e.own, id: e.id}
}

// summaryText is the message that stands for what was compacted.
func (h *History) summaryText(b *p.Compacted, unanswered bool) string {
	var s strings.Builder
	s.WriteString("The conversation so far was long, and its earlier part was replaced by this summary.")
	if b.Local {
		s.WriteString(" The model did not write it: it was put together from the records.")
	}
	fmt.Fprintf(&s, "\n\n%s\n", strings.TrimSpace(b.Summary))
	if len(h.plan) > 0 {
		s.WriteString("\nThe plan:\n")
		for _, step := range h.plan {
			fmt.Fprintf(&s, "- [%s] %s\n", step.Status, step.Step)
		}
	}
	if list := h.changedText(); list != "" && !b.Local {
		s.WriteString("\nFiles that were changed:\n" + list)
	}
	if running := h.runningText(); running != "" {
		s.WriteString("\n" + running + "\n")
	}
	if outputs := h.latestOutputs(outputRoom(b, h.window)); outputs != "" {
		s.WriteString("\nThe latest calls and what they printed:\n" + outputs + "\n")
	}
	text := tag("conversation_summary", "\n"+s.String())
	const lookup = "What was said and printed before can be looked up with search_history and read_history."
	switch {
	case unanswered:
		return text + "\n" + lookup + " The message of the user that follows is to be answered."
	case h.notes.Compact:
		return text + "\n" + lookup
	}
	return text + "\nThe work was under way. Continue it from there: do not start again, and do not repeat what is done. " + lookup
}

// outputRoom is how many bytes of outputs a compaction keeps: a part of what is kept of the user's messages, and of the window.
func outputRoom(b *p.Compacted, window int64) int {
	if b.Local { // which has some
		return 0
	}
	room := b.Keep * bytesPerToken / 4
	if window > 0 {
		room = min(room, window*bytesPerToken/20)
	}
	return int(min(room, keptOutputs*keptOutput))
}

// LocalSummary is a summary made from what is known, for when no model makes one:
// what was summarised before, the files that were changed, and the latest calls.
func (h *History) LocalSummary(most int64) string {
	h.decode()
	var s strings.Builder
	for _, e := range h.entries {
		if text := p.PlainText(e.item.Content); e.item.Kind == p.PromptUser && strings.HasPrefix(text, "<conversation_summary>") {
			inner, _, _ := strings.Cut(strings.TrimPrefix(text, "<conversation_summary>\n"), "</conversation_summary>")
			fmt.Fprintf(&s, "Summary of what came before:\n%s\n\n", shortenText(inner, int(most)*bytesPerToken/3, ""))
		}
	}
	if len(h.changed) > 0 {
		fmt.Fprintf(&s, "Files that were changed:\n%s\n", shortenText(h.changedText(), int(most)*bytesPerToken/6, ""))
	}
	var last []string
	room := int(most) * bytesPerToken / 3
	for _, e := range slices.Backward(h.entries) {
		line := ""
		switch e.item.Kind {
		case p.PromptCall:
			line = "called " + describe(e.item)
		case p.PromptOutput:
			line = "  it printed: " + shortenText(e.item.Text, 300, "")
		case p.PromptAssistant:
			line = "said: " + shortenText(e.item.Text, 600, "")
		default:
			continue
		}
		if room -= len(line); room < 0 {
			break
		}
		last = append(last, line)
	}
	slices.Reverse(last)
	if len(last) > 0 {
		fmt.Fprintf(&s, "What the model did last:\n%s\n", strings.Join(last, "\n"))
	}
	if s.Len() == 0 {
		return "Nothing was done yet."
	}
	return strings.TrimSpace(s.String())
}

// HasLookup reports whether something that was said is no longer sent, so that it is
// worth looking up.
func (h *History) HasLookup() bool { return h.compacted != 0 || h.shortened }
