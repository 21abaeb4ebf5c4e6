package tui

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// offerReturned puts returned messages into the composer while no turn runs, and returns their texts. Those
// that it may offer again, because they were not sent after all, are given.
func (m *model) offerReturned(again ...p.InputID) []string {
	t := &m.conv
	t.offers.Again(again)
	if !t.caughtUp() {
		return nil
	}
	var back []composer.ReturnedMessage
	for _, in := range t.tr.Undelivered() {
		back = append(back, composer.ReturnedMessage{ID: in.Input, Text: m.comp.Written(in.Content)})
	}
	t.offers.Withdraw(m.comp, back)
	if t.tr.Active {
		return nil
	}
	return t.offers.Offer(m.comp, back)
}

// takeEdited takes messages from the conversation that were offered and have been edited: then the draft has them,
// which is saved first.
func (m *model) takeEdited() tea.Cmd {
	id, ids := m.conv.id, m.conv.offers.Edited(m.comp)
	if len(ids) == 0 {
		return nil
	}
	return m.draft.SaveThen(m, id, m.unsent(), func() tea.Cmd {
		if m.conv.id != id { // it is offered again when the conversation is
			return nil
		}
		return m.send(m.takeReturned(ids))
	})
}

// takeReturned is the op that takes messages from the conversation.
func (m *model) takeReturned(ids []p.InputID) *client.Op {
	op := client.NewOp(p.ResolveReturned{Inputs: ids, As: p.ResolvedTaken})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if errors.Is(err, engine.ErrNotReturned) {
			return m.Hint(theme.Warn, "another client has sent, taken or dropped this message")
		}
		if err != nil {
			return m.ShowError(err)
		}
		return nil
	}
	return op
}
