// Package returned offers messages that were not delivered in the composer, once in each window, and knows
// which of them are still there as they were.
package returned

import (
	"slices"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Box is where a person writes.
type Box interface {
	Text() string
	SetText(string)
	Recalling() bool // something else is shown for a moment
}

// A Message is one that was returned, as a text for the box.
type Message struct {
	ID   p.InputID
	Text string
}

// Offers are the returned messages of a conversation that are in the box as they were returned, at its
// beginning. They stay returned until they are sent from here, so that nothing is lost if this program ends; until
// another client sends or takes them, which takes them out of the box; or until they are edited, which takes
// them from the conversation: what is written is a draft then. The zero value is empty.
type Offers struct {
	ids  []p.InputID
	text string             // of them all
	seen map[p.InputID]bool // those that were offered, or are about to be sent
}

const gap = "\n\n"

// Offer makes the box begin with the messages that were not offered yet, and returns their texts. It adds
// nothing if they are there already, as a part of a draft.
func (o *Offers) Offer(b Box, back []Message) (texts []string) {
	var ids []p.InputID
	for _, in := range back {
		if !o.seen[in.ID] && strings.TrimSpace(in.Text) != "" {
			texts, ids = append(texts, in.Text), append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	text := strings.Join(texts, gap)
	if now := b.Text(); !strings.HasPrefix(now, text) {
		b.SetText(join(text, now))
	}
	o.ids, o.text = append(ids, o.ids...), join(text, o.text)
	o.see(ids, true)
	return texts
}

func join(first, second string) string {
	if strings.TrimSpace(second) == "" {
		return first
	}
	return first + gap + second
}

func (o *Offers) see(ids []p.InputID, seen bool) {
	if o.seen == nil {
		o.seen = map[p.InputID]bool{}
	}
	for _, id := range ids {
		o.seen[id] = seen
	}
}

// Again says that messages were not sent after all: those that are still returned can be offered again.
func (o *Offers) Again(ids []p.InputID) { o.see(ids, false) }

// Withdraw takes messages out of the box that are no longer returned, because another client has sent, taken or
// dropped them. The others can be offered again.
func (o *Offers) Withdraw(b Box, back []Message) {
	isGone := func(id p.InputID) bool {
		return !slices.ContainsFunc(back, func(in Message) bool { return in.ID == id })
	}
	if slices.ContainsFunc(o.ids, isGone) {
		o.TakeOut(b)
		o.Again(slices.DeleteFunc(o.ids, isGone))
		o.ids, o.text = nil, ""
	}
}

// TakeOut takes the offered messages out of the box, if they are there as they were.
func (o *Offers) TakeOut(b Box) {
	if o.text != "" && o.begins(b.Text()) {
		b.SetText(strings.TrimPrefix(strings.TrimPrefix(b.Text(), o.text), gap))
	}
}

// begins reports whether a text begins with the offered messages.
func (o *Offers) begins(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), strings.TrimSpace(o.text))
}

// Send returns the offered messages that a text delivers which was in the box and is about to be sent.
func (o *Offers) Send(text string) (ids []p.InputID) {
	if len(o.ids) > 0 && o.begins(text) {
		ids, o.ids, o.text = o.ids, nil, ""
	}
	return ids
}

// Edited returns the offered messages once, when they have been edited.
func (o *Offers) Edited(b Box) (ids []p.InputID) {
	if len(o.ids) > 0 && !b.Recalling() && !o.begins(b.Text()) {
		ids, o.ids, o.text = o.ids, nil, ""
	}
	return ids
}

// Append puts a draft behind the offered messages, and reports false if there are none.
func (o *Offers) Append(b Box, draft string) bool {
	if len(o.ids) == 0 || !o.begins(b.Text()) {
		return false
	}
	b.SetText(join(b.Text(), draft))
	return true
}
