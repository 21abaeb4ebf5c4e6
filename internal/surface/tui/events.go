package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// onBatch folds what happened.
func (m *model) onBatch(b client.Batch) tea.Cmd {
	if b.From != m.conv.feed {
		return nil // of a conversation that is no longer on the screen
	}
	var broken *client.PanicError
	if errors.As(b.Err, &broken) {
		panic(broken)
	}
	t := &m.conv
	before, cwd := m.watch(), t.tr.Settings.Cwd
	for _, e := range b.Events {
		m.apply(e)
	}
	ended := before.active && !t.tr.Active
	cmds := []tea.Cmd{m.notifyOf(before)}
	if before.on && ended && m.planned() && m.dialog == nil && m.screen == nil {
		cmds = append(cmds, m.askAboutPlan())
	}
	if ended || cwd != t.tr.Settings.Cwd {
		m.setDir(t.tr.Settings.Cwd)
		cmds = append(cmds, m.branch())
	}
	if b.Err == nil {
		return tea.Batch(append(cmds, t.feed.Next)...)
	}
	t.feed = nil
	if m.leaving != nil {
		return tea.Quit // this was the last there is to see
	}
	if m.ctx.Err() == nil && !errors.Is(b.Err, context.Canceled) {
		cmds = append(cmds, m.ShowError(b.Err))
	}
	return tea.Batch(cmds...)
}

func (m *model) apply(e p.Event) {
	t := &m.conv
	before, caught := t.tr.Usage, t.caughtUp()
	for _, it := range t.tr.Apply(e) {
		m.show(it)
	}
	if e.Seq != 0 {
		t.last = e.Seq
	}
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		t.planning, t.proposed = t.tr.Settings.Plan && !b.Shell, false
	case *p.TurnEnded:
		t.ended = b.Reason
		t.proposed = t.planning && b.Reason == p.Completed
	}
	if now := t.tr.Usage; now != before {
		t.context = now.Input - before.Input + now.Output - before.Output
	}
	if !caught && t.caughtUp() {
		m.onCaughtUp()
	}
	m.offerReturned()
	if !t.tr.Active {
		m.stopTurn = 0
	}
}

// show puts an item on the screen and notices whether it asks for something.
func (m *model) show(it *transcript.Item) {
	m.view.Put(it)
	t := &m.conv
	t.showQuestions(it)
	i := slices.Index(t.asks, it)
	switch {
	case it.Status == transcript.Asking && i < 0:
		t.asks = append(t.asks, it)
		if m.screen != nil {
			m.screen.note("an approval is pending: Esc goes back to it")
		}
	case it.Status != transcript.Asking && i >= 0:
		t.asks = slices.Delete(t.asks, i, i+1)
	}
}

// onCaughtUp is called when all that was there has been seen: what was returned, and not sent, taken or dropped,
// is put into the composer.
func (m *model) onCaughtUp() {
	t := &m.conv
	if t.from > 0 { // what is not loaded counts too
		t.base = t.found.Usage.Sub(t.tr.Usage)
		t.tr.Running, t.tr.Returned = slices.Clone(t.found.Background), slices.Clone(t.found.Returned)
	}
	if t.from > 0 && m.inline() {
		m.note(false, "this is the end of a long conversation; fermata show %s prints all of it", t.id)
	}
	m.putNotes()
	if texts := m.offerReturned(); len(texts) > 0 {
		m.note(false, "not delivered, and returned to the box below: %s", strings.Join(texts, " · "))
	}
}

// guardTime is how long nobody must have typed before a dialog takes keys.
const guardTime = 400 * time.Millisecond

// ask opens the dialog of the next approval, and closes one that was answered
// by somebody else.
func (m *model) ask() tea.Cmd {
	t := &m.conv
	if !t.caughtUp() {
		return nil
	}
	var cmds []tea.Cmd
	if d := m.dialog; d != nil && d.item != nil && !slices.Contains(t.asks, d.item) {
		m.dialog = nil
		if call := d.item.ID; !t.answeredID(call) && t.tr.Active && !m.stopping() {
			cmds = append(cmds, m.Hint(theme.Accent, "that was answered elsewhere"))
		}
	}
	if d := m.dialog; d != nil && d.turn != 0 && (!t.tr.Active || t.tr.Turn != d.turn) {
		m.dialog = nil
		cmds = append(cmds, m.Hint(theme.Accent, "turn %d has ended", d.turn))
	}
	if m.aside = m.aside && len(t.asks) > 0 && strings.HasPrefix(m.comp.Text(), "/"); m.aside {
		return tea.Batch(cmds...)
	}
	if m.dialog == nil {
		if i := slices.IndexFunc(t.asks, func(it *transcript.Item) bool { return !t.isAnswered(it) }); i >= 0 {
			cmds = append(cmds, m.askFor(t.asks[i]))
		}
	}
	cmds = append(cmds, m.askQuestion())
	if m.dialog != nil && m.dialog.item != nil {
		m.dialog.SetPosition(1+slices.Index(t.asks, m.dialog.item), len(t.asks))
	}
	return tea.Batch(cmds...)
}

func (t *conversation) answeredID(id string) bool {
	call, err := p.ParseItemID(id)
	return err == nil && t.answered[call]
}

func (t *conversation) isAnswered(it *transcript.Item) bool { return t.answeredID(it.ID) }

func (m *model) askFor(it *transcript.Item) tea.Cmd {
	req := *it.Approval
	ask := dialog.Approval{Request: req, Changes: it.Changes, Diff: dialog.DiffOf(it.Changes, m.Settings().Cwd), Dir: m.Settings().Cwd}
	var remember func() error
	ask.Offer, remember = m.permissions().Offer(&req)
	m.dialog = &asking{
		item:   it,
		Dialog: dialog.NewApproval(m.theme, ask),
		done:   func(a dialog.Answer) tea.Cmd { return m.approve(req.Call, a, remember) },
	}
	return m.dialog.Guard(guardTime)
}

// approved is the answer to an approval's answer.
type approved struct {
	conversation p.ConversationID
	call         p.CallID
	err          error
}

func (m *model) approve(call p.CallID, a dialog.Answer, remember func() error) tea.Cmd {
	m.conv.answered[call] = true
	if a.Decision == p.Abort {
		m.stopTurn = m.conv.tr.Turn
	}
	ctx, e, id := m.ctx, m.o.Engine, m.conv.id
	return func() tea.Msg {
		if a.Always {
			if err := remember(); err != nil {
				return approved{id, call, fmt.Errorf("the permission was not saved, and nothing was approved: %w", err)}
			}
		}
		_, err := e.Submit(ctx, id, p.Approve{Call: call, Decision: a.Decision, Message: a.Message})
		return approved{id, call, err}
	}
}

func (m *model) onApproved(a approved) tea.Cmd {
	if a.err == nil {
		return nil
	}
	if a.conversation != m.conv.id { // what is on the screen was not answered
		return m.ShowError(fmt.Errorf("an answer in the conversation before was not taken: %w", a.err))
	}
	m.stopTurn = 0
	if errors.Is(a.err, engine.ErrNoApproval) {
		return m.Hint(theme.Accent, "that was answered elsewhere")
	}
	delete(m.conv.answered, a.call) // ask again
	return m.ShowError(a.err)
}
