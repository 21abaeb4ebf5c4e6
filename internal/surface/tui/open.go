package tui

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A conversation is the one on the screen.
type conversation struct {
	id    p.ConversationID // empty until the first message
	tr    *transcript.Transcript
	feed  *client.Feed // nil if it is not followed
	last  p.Seq        // the last event seen
	found engine.Snapshot
	from  p.Cursor // what is up to here is not loaded

	asks     []*transcript.Item // open approvals, oldest first
	answered map[p.CallID]bool  // by this person

	questions         []*transcript.Item         // calls whose servers ask something, oldest first
	answeredQuestions map[dialog.QuestionID]bool // by this person
	putOff            dialog.QuestionID          // the question that the person wants to answer later
	notes             []*transcript.Item         // what this program has to say
	offers            composer.ReturnedOffers    // returned messages that are in the composer
	base              p.Usage                    // of what is not loaded
	context           int64                      // tokens that the last request and its response took
	loading           *atomic.Uint64             // how far the earlier part is read; nil if it is not being
	stopLoad          context.CancelFunc
	ended             p.EndReason // of the last turn
	planning          bool        // the current turn, or the last one, was begun in plan mode
	proposed          bool        // it was the last one, and completed
}

// caught reports whether everything that was there when the conversation was
// opened has been seen.
func (t *conversation) caughtUp() bool { return t.last >= t.found.Last }

// begin puts a conversation on the screen and follows it after the cursor.
func (m *model) begin(id p.ConversationID, snap engine.Snapshot, after p.Cursor) {
	m.stopFollowing()
	m.conv.offers.TakeOut(m.comp) // they are offered where they were returned
	var notes []*transcript.Item  // of the start, which belong to what comes
	if m.conv.id != "" {
		m.before = m.conv.id
	} else {
		notes = m.conv.notes
	}
	m.conv = conversation{
		id: id, tr: &transcript.Transcript{Settings: snap.Settings, Title: snap.Title, Completions: true}, found: snap,
		last: after, from: after, answered: map[p.CallID]bool{}, answeredQuestions: map[dialog.QuestionID]bool{}, notes: notes,
	}
	m.stopTurn = 0
	m.view.Reset()
	m.setDir(m.Settings().Cwd)
	m.dialog = nil
	if m.conv.caughtUp() {
		m.putNotes()
	}
	if id != "" {
		m.follow(after)
	}
}

func (m *model) putNotes() {
	for _, it := range m.conv.notes {
		m.view.Put(it)
	}
}

func (m *model) stopFollowing() {
	if m.conv.feed != nil {
		m.conv.feed.Stop()
	}
	if m.conv.stopLoad != nil {
		m.conv.stopLoad()
	}
}

func (m *model) follow(after p.Cursor) {
	ctx, stop := context.WithCancel(m.ctx)
	m.conv.feed = client.Follow(ctx, m.o.Engine.Subscribe(ctx, m.conv.id, after), stop)
}

// Settings are those in force, or those that the next conversation begins with.
func (m *model) Settings() p.Settings {
	if m.conv.id != "" {
		return m.conv.tr.Settings
	}
	return m.requested.Apply(m.fresh)
}

// An attempt is a conversation that is being opened.
type attempt struct {
	id     p.ConversationID // empty while it is being made
	cancel context.CancelFunc
}

// try begins an attempt in place of the one before.
func (m *model) try(id p.ConversationID) (context.Context, *attempt) {
	m.cancelOpening()
	ctx, cancel := context.WithCancel(m.ctx)
	m.opening = &attempt{id, cancel}
	return ctx, m.opening
}

// cancelOpening ends the attempt to open a conversation, if there is one.
func (m *model) cancelOpening() {
	if m.opening != nil {
		m.opening.cancel()
		m.opening = nil
	}
}

// opened is the answer to open.
type opened struct {
	by *attempt
	id p.ConversationID
	client.Opened
	err error
}

// open resumes a conversation.
func (m *model) open(id p.ConversationID) tea.Cmd {
	ctx, by := m.try(id)
	src := client.Source{Engine: m.o.Engine, Shown: m.o.shown, Owner: m.o.Owner}
	if id == m.o.Resume { // which this run was started for
		src.Overrides = m.o.Overrides
	}
	return tea.Batch(m.spin(), func() tea.Msg {
		o, err := src.Open(ctx, id)
		return opened{by, id, o, err}
	})
}

func (m *model) onOpened(o opened) tea.Cmd {
	if o.by != m.opening { // another one was chosen, or none
		return m.releaseUnused(o.id)
	}
	m.cancelOpening() // it is over
	if o.err != nil {
		return m.notOpened(o)
	}
	m.screen = nil
	left := m.leaveConversation(o.id)
	m.begin(o.id, o.Snapshot, o.After)
	if o.Gone != nil {
		m.note(true, "%v; fermata resume %s -C DIR works in another directory", o.Gone, o.id)
	}
	return tea.Batch(left, m.conv.feed.Next, m.flush(), m.branch(), m.loadDraft(), m.notifyOfRecovery(o.Snapshot))
}

// notOpened says why, and lets the person choose another conversation. What was
// meant for this one is not for that.
func (m *model) notOpened(o opened) tea.Cmd {
	words := explain(o.err)
	m.recall()
	if pick, ok := m.screen.(*pick); ok && pick.resuming {
		pick.SetNote(words)
		return nil
	}
	cmd := m.pickConversation()
	m.screen.(*pick).SetNote(words)
	return cmd
}

// loaded is the answer to loadEarlier.
type loaded struct {
	id p.ConversationID
	client.Loaded
	err error
}

// loadEarlier reads what was left out when the conversation was opened. It is
// folded beside, and takes the place of what is shown when it is whole.
func (m *model) loadEarlier() tea.Cmd {
	t := &m.conv
	if t.from == 0 || t.loading != nil || !t.caughtUp() || m.inline() {
		return nil
	}
	ctx, stop := context.WithCancel(m.ctx)
	at := &atomic.Uint64{}
	t.loading, t.stopLoad = at, stop
	e, id, to := m.o.Engine, t.id, t.last
	return tea.Batch(m.spin(), func() tea.Msg {
		defer stop()
		out, err := client.Load(ctx, e, id, to, at)
		return loaded{id, out, err}
	})
}

func (m *model) onLoaded(l loaded) tea.Cmd {
	t := &m.conv
	if l.id != t.id || t.loading == nil {
		return nil
	}
	t.loading, t.stopLoad = nil, nil
	if l.err != nil {
		return m.ShowError(l.err)
	}
	if t.feed != nil {
		t.feed.Stop()
	}
	below := m.view.Below()
	t.tr, t.last, t.from, t.base = l.Transcript, l.To, 0, p.Usage{}
	t.asks, t.questions = nil, nil
	m.view.Reset()
	for _, it := range l.Transcript.Items {
		m.show(it)
	}
	m.putNotes()
	if d := m.dialog; d != nil && d.item != nil { // it is about the same call as before
		if i := slices.IndexFunc(t.asks, func(it *transcript.Item) bool { return it.ID == d.item.ID }); i >= 0 {
			d.item = t.asks[i]
		}
	}
	m.view.ScrollBy(-below) // what is below the window is what it was
	m.follow(t.last)
	return t.feed.Next
}

// note is a remark of this program in the conversation.
func (m *model) note(warn bool, format string, args ...any) {
	m.noteCount++
	it := &transcript.Item{
		ID: fmt.Sprintf("tui%d", m.noteCount), Kind: transcript.Notice, Status: transcript.Done, Warn: warn,
		Text: fmt.Sprintf(format, args...),
	}
	m.conv.notes = append(m.conv.notes, it)
	m.view.Put(it)
}

// fork continues in a copy of the conversation.
func (m *model) fork() tea.Cmd {
	if m.conv.id == "" {
		return m.ShowError(errNoConversation)
	}
	e, id := m.o.Engine, m.conv.id
	ctx, by := m.try("")
	return tea.Batch(m.spin(), func() tea.Msg {
		to, err := e.Fork(ctx, id, 0)
		return forked{by, to, err}
	})
}

type forked struct {
	by  *attempt
	id  p.ConversationID
	err error
}

func (m *model) onForked(f forked) tea.Cmd {
	if f.by != m.opening {
		return nil
	}
	m.cancelOpening() // it is over
	if f.err != nil {
		return m.ShowError(f.err)
	}
	return tea.Batch(m.open(f.id), m.Hint(theme.OK, "this is a copy; the original is unchanged"))
}
