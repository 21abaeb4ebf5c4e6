package tui

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/screen"
	p "github.com/fermata-agent/fermata/protocol"
)

// ConversationChanged shows the conversation of the client in place of another.
func (m *model) ConversationChanged(before p.ConversationID) {
	m.offers.TakeOut(m.comp) // they are offered where they were returned
	m.offers = composer.ReturnedOffers{}
	if before != "" { // notes of the start belong to what comes
		m.notes = nil
	}
	m.view.Reset()
	m.setDir(m.Settings().Cwd)
	m.ask.Open = nil
	if m.conv.CaughtUp() {
		m.putNotes()
	}
}

// Opened shows what is known of a conversation that was resumed.
func (m *model) Opened(o client.Opened) tea.Cmd {
	m.overlay = nil
	if o.Gone != nil {
		m.note(true, "%v; fermata resume %s -C DIR works in another directory", o.Gone, m.conv.ID)
	}
	cmds := []tea.Cmd{m.findBranch(), m.loadDraft()}
	if len(o.Snapshot.Recovered) > 0 {
		cmds = append(cmds, m.notify.Recovered())
	}
	return tea.Batch(cmds...)
}

// NotOpened says why, and lets the user choose another conversation.
func (m *model) NotOpened(err error) tea.Cmd {
	var cmd tea.Cmd
	if list, ok := m.overlay.(*dialog.Picker); !ok || !list.Stays() {
		cmd = m.pickConversation()
	}
	m.overlay.SetNote(client.Explain(err))
	return cmd
}

// Reloaded shows the whole conversation in place of its end. What is below the window stays what it was.
func (m *model) Reloaded() {
	below := m.view.Below()
	m.view.Reset()
	for _, it := range m.conv.Transcript.Items {
		m.view.Put(it)
	}
	m.putNotes()
	m.ask.Reloaded()
	m.view.ScrollBy(-below)
}

// loadEarlier reads what was left out when the conversation was opened. Inline it could not be shown.
func (m *model) loadEarlier() tea.Cmd {
	if m.inline() {
		return nil
	}
	return m.LoadEarlier()
}

// pickConversation lets the user choose a conversation.
func (m *model) pickConversation() tea.Cmd {
	return m.do.PickConversation(m.Open, func(list *dialog.Picker) bool { return m.overlay == dialog.Overlay(list) })
}

// newConversation begins a new conversation.
func (m *model) newConversation() tea.Cmd {
	return tea.Batch(m.Begin(), m.preview(), m.findBranch())
}

// onBatch folds what happened.
func (m *model) onBatch(b client.Batch) tea.Cmd {
	if b.From != m.conv.Feed {
		return nil // of a conversation that is no longer on the screen
	}
	var broken *client.PanicError
	if errors.As(b.Err, &broken) {
		panic(broken)
	}
	t := m.conv
	before, cwd := m.watch(), t.Transcript.Settings.Cwd
	for _, e := range b.Events {
		m.apply(e)
	}
	ended := before.Active && !t.Transcript.Active
	cmds := []tea.Cmd{m.notify.Compare(before, m.watch())}
	if before.Live && ended && m.HasPlan() && m.ask.Open == nil && m.overlay == nil {
		cmds = append(cmds, m.ask.AskPlan())
	}
	if ended || cwd != t.Transcript.Settings.Cwd {
		m.setDir(t.Transcript.Settings.Cwd)
		cmds = append(cmds, m.findBranch())
	}
	if b.Err == nil {
		return tea.Batch(append(cmds, t.Feed.Next)...)
	}
	t.Feed = nil
	if m.leaving != nil {
		return tea.Quit // this was the last there is to see
	}
	if m.Context().Err() == nil && !errors.Is(b.Err, context.Canceled) {
		cmds = append(cmds, m.ShowError(b.Err))
	}
	return tea.Batch(cmds...)
}

// watch is what the user may want to hear of.
func (m *model) watch() screen.Watched {
	t := m.conv
	return screen.Watched{
		Approvals: len(t.Approvals), Questions: len(t.Questions), Active: t.Transcript.Active,
		Held: t.Transcript.Hold != nil, Live: t.CaughtUp(), Ended: t.Ended,
	}
}

func (m *model) apply(e p.Event) {
	t := m.conv
	caught, asked := t.CaughtUp(), len(t.Approvals)
	for _, it := range m.Apply(e) {
		m.view.Put(it)
	}
	if m.overlay != nil && len(t.Approvals) > asked {
		m.overlay.SetNote("an approval is pending: Esc goes back to it")
	}
	if !caught && t.CaughtUp() {
		m.onCaughtUp()
	}
	m.offerReturned()
}

// onCaughtUp is called when all that was there has been seen: what was returned, and not sent, taken or dropped,
// is put into the composer.
func (m *model) onCaughtUp() {
	if m.conv.From > 0 && m.inline() {
		m.note(false, "this is the end of a long conversation; fermata show %s prints all of it", m.conv.ID)
	}
	m.putNotes()
	if texts := m.offerReturned(); len(texts) > 0 {
		m.note(false, "not delivered, and returned to the box below: %s", strings.Join(texts, " · "))
	}
}

// moved says that another process has the conversation open than before.
type moved struct {
	id p.ConversationID
	app.Move
}

func (m *model) onMoved(msg moved) {
	if msg.id != m.conv.ID {
		return
	}
	m.note(msg.Died, "%s", client.DescribeMove(msg.Move))
}
