package composer

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

// A ReturnedMessage is one that was returned, as a text for the box.
type ReturnedMessage struct {
	ID   p.InputID // of the message
	Text string    // as it was written
}

// ReturnedOffers are the returned messages of a conversation that are in the box as they were returned, at its
// beginning. They stay returned until they are sent from here, so that nothing is lost if this program ends; until
// another client sends or takes them, which takes them out of the box; or until they are edited, which takes
// them from the conversation: what is written is a draft then. The zero value is empty.
type ReturnedOffers struct {
	ids  []p.InputID
	text string             // of them all
	seen map[p.InputID]bool // those that were offered, or are about to be sent
}

const paragraph = "\n\n"

// Sync makes the box hold what is returned: what another client has taken goes, and while nothing runs what was not
// offered yet is put in front. It returns the texts of that. text makes of a message what was written.
func (o *ReturnedOffers) Sync(b Box, back []p.ReturnedInput, active bool, text func([]p.Content) string) []string {
	var list []ReturnedMessage
	for _, in := range back {
		list = append(list, ReturnedMessage{ID: in.Input, Text: text(in.Content)})
	}
	o.Withdraw(b, list)
	if active {
		return nil
	}
	return o.Offer(b, list)
}

// Offer makes the box begin with the messages that were not offered yet, and returns their texts. It adds
// nothing if they are there already, as a part of a draft.
func (o *ReturnedOffers) Offer(b Box, back []ReturnedMessage) (texts []string) {
	var ids []p.InputID
	for _, in := range back {
		if !o.seen[in.ID] && strings.TrimSpace(in.Text) != "" {
			texts, ids = append(texts, in.Text), append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	text := strings.Join(texts, paragraph)
	if now := b.Text(); !strings.HasPrefix(now, text) {
		b.SetText(joinParagraphs(text, now))
	}
	o.ids, o.text = append(ids, o.ids...), joinParagraphs(text, o.text)
	o.see(ids, true)
	return texts
}

func joinParagraphs(first, second string) string {
	if strings.TrimSpace(second) == "" {
		return first
	}
	return first + paragraph + second
}

func (o *ReturnedOffers) see(ids []p.InputID, seen bool) {
	if o.seen == nil {
		o.seen = map[p.InputID]bool{}
	}
	for _, id := range ids {
		o.seen[id] = seen
	}
}

// Again says that messages were not sent after all: those that are still returned can be offered again.
func (o *ReturnedOffers) Again(ids []p.InputID) { o.see(ids, false) }

// Withdraw takes messages out of the box that are no longer returned, because another client has sent, taken or
// dropped them. The others can be offered again.
func (o *ReturnedOffers) Withdraw(b Box, back []ReturnedMessage) {
	isGone := func(id p.InputID) bool {
		return !slices.ContainsFunc(back, func(in ReturnedMessage) bool { return in.ID == id })
	}
	if slices.ContainsFunc(o.ids, isGone) {
		o.TakeOut(b)
		o.Again(slices.DeleteFunc(o.ids, isGone))
		o.ids, o.text = nil, ""
	}
}

// TakeOut takes the offered messages out of the box, if they are there as they were.
func (o *ReturnedOffers) TakeOut(b Box) {
	if o.text != "" && o.begins(b.Text()) {
		b.SetText(strings.TrimPrefix(strings.TrimPrefix(b.Text(), o.text), paragraph))
	}
}

// begins reports whether a text begins with the offered messages.
func (o *ReturnedOffers) begins(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), strings.TrimSpace(o.text))
}

// Send returns the offered messages that a text delivers which was in the box and is about to be sent.
func (o *ReturnedOffers) Send(text string) (ids []p.InputID) {
	if len(o.ids) > 0 && o.begins(text) {
		ids, o.ids, o.text = o.ids, nil, ""
	}
	return ids
}

// Edited returns the offered messages once, when they have been edited.
func (o *ReturnedOffers) Edited(b Box) (ids []p.InputID) {
	if len(o.ids) > 0 && !b.Recalling() && !o.begins(b.Text()) {
		ids, o.ids, o.text = o.ids, nil, ""
	}
	return ids
}

// Restore puts a draft back into the composer, behind the offered messages.
func (o *ReturnedOffers) Restore(c *Composer, draft string) {
	if strings.HasPrefix(draft, c.Text()) { // which may have been returned a moment ago
		c.SetText(draft)
		return
	}
	if !o.append(c, draft) {
		c.Prepend(draft)
	}
}

// append puts a draft behind the offered messages, and reports false if there are none.
func (o *ReturnedOffers) append(b Box, draft string) bool {
	if len(o.ids) == 0 || !o.begins(b.Text()) {
		return false
	}
	b.SetText(joinParagraphs(b.Text(), draft))
	return true
}
