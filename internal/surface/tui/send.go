package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// send puts an op into the outbox.
func (m *model) send(op *client.Op) tea.Cmd {
	m.out.Put(op.For(m.conv.id, m.opening != nil))
	return tea.Batch(m.flush(), m.spin())
}

// sendFirst puts an op before those that wait.
func (m *model) sendFirst(op *client.Op) tea.Cmd {
	m.out.PutFirst(op.For(m.conv.id, m.opening != nil))
	return m.flush()
}

// flush sends the next op, if none is on its way.
func (m *model) flush() tea.Cmd {
	if m.opening != nil || m.trusting || m.leaving != nil {
		return nil
	}
	op := m.out.Next()
	if op == nil {
		return nil
	}
	id := cmp.Or(op.Conversation, m.conv.id)
	if id == "" && !op.Begins {
		return m.answered(op, p.Receipt{}, errNoConversation)
	}
	m.out.Send(op)
	ctx, o, requested, created := m.ctx, m.o, m.requested, m.created
	return func() tea.Msg {
		return client.Submit(ctx, o.Engine, id, op, func(ctx context.Context) (p.ConversationID, error) {
			id, err := create(ctx, o, requested)
			if err == nil {
				created.Store(&id)
				o.shown(id)
			}
			return id, err
		})
	}
}

var errNoConversation = errors.New("there is no conversation yet: send a message first")

func create(ctx context.Context, o Options, requested p.Overrides) (p.ConversationID, error) {
	s, err := o.Settings(ctx)
	if err != nil {
		return "", err
	}
	return o.Engine.Create(ctx, requested.Apply(s))
}

// onSent takes the answer to an op.
func (m *model) onSent(s client.Sent) tea.Cmd {
	m.out.Done()
	m.created.Store(nil)
	if s.Err != nil && m.leaving != nil {
		return nil // nobody would see it; the history has the text
	}
	var next tea.Cmd
	switch {
	case s.Created:
		m.begin(s.Conversation, engine.Snapshot{}, 0)
		next = m.conv.feed.Next
	case m.conv.feed == nil && m.conv.id == s.Conversation && s.Err == nil: // it had ended; the conversation is open again
		m.follow(m.conv.last)
		next = m.conv.feed.Next
	}
	return tea.Batch(next, m.answered(s.Op, s.Receipt, s.Err), m.flush())
}

// answered deals with what became of an op.
func (m *model) answered(op *client.Op, r p.Receipt, err error) tea.Cmd {
	if err != nil && op.Begins {
		m.Return(op.Text)
		m.offerReturned(op.Returned...)
		m.stopNext = false
	}
	if op.Then != nil {
		return op.Then(r, err)
	}
	if err != nil {
		return m.ShowError(err)
	}
	if op.Begins && m.stopNext {
		return m.stopTaken(op, r)
	}
	return nil
}

// submit sends what was written.
func (m *model) submit(a composer.Submit) tea.Cmd { return m.submitWith(a, nil) }

// submitWith sends what was written, with changes of the settings for its turn and those after it.
func (m *model) submitWith(a composer.Submit, o *p.Overrides) tea.Cmd {
	m.view.Bottom()
	load := composer.ImageReader(m.o.Image)
	returned := m.conv.offers.Send(a.Text)
	return m.send(&client.Op{
		Begins: true, Text: m.comp.WithImages(a.Text, a.Images), Returned: returned,
		Make: func(ctx context.Context) (p.Op, error) {
			content, err := m.o.expand(ctx, a.Text)
			if err != nil {
				return nil, err
			}
			for _, file := range a.Images {
				c, err := load(file)
				if err != nil {
					return nil, err
				}
				content = append(content, c)
			}
			return p.UserTurn{Content: content, WhenBusy: a.Mode, Overrides: o, Returned: returned}, nil
		},
	})
}

// shell runs a command of the person's own.
func (m *model) shell(line string) tea.Cmd {
	text := "!" + line
	if m.Busy() {
		m.comp.SetText(text)
		return m.Hint(theme.Warn, "your own commands can run when the turn has ended")
	}
	m.view.Bottom()
	op := client.NewOp(p.UserShell{Command: line})
	op.Begins, op.Text = true, text
	return m.send(op)
}

// Return puts a text that was not delivered before what is written.
func (m *model) Return(texts ...string) {
	texts = slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(texts) == 0 {
		return
	}
	if now := m.comp.Text(); strings.TrimSpace(now) != "" {
		texts = append(texts, now)
	}
	m.comp.SetText(strings.Join(texts, "\n\n"))
}

// recall returns what waits to be sent to the composer.
func (m *model) recall() {
	texts, returned := m.out.Recall()
	m.Return(texts...)
	m.offerReturned(returned...)
}

// editPending returns the last message that waits to the composer.
func (m *model) editPending() tea.Cmd {
	if op := m.out.RecallLast(); op != nil {
		m.Return(op.Text)
		m.offerReturned(op.Returned...)
		return nil
	}
	waiting := m.conv.tr.Inputs
	if len(waiting) == 0 {
		return nil
	}
	in := waiting[len(waiting)-1]
	op := client.NewOp(p.DeleteInput{Input: in.Input})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		if errors.Is(err, engine.ErrNoInput) {
			return m.Hint(theme.Warn, "too late: the message has been delivered")
		}
		if err != nil {
			return m.ShowError(err)
		}
		m.Return(m.comp.Written(in.Content))
		return nil
	}
	return m.send(op)
}
