package tui

import (
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// An errand is an op on its way to the conversation.
type errand struct {
	make func(context.Context) (p.Op, error) // called from a command
	text string                              // of a message: to give back if it is refused
	// begins says that it starts a conversation if there is none.
	begins bool
	then   func(p.Receipt, error) tea.Cmd // called by Update; nil shows the error
}

// say is an errand with an op that needs nothing made.
func say(op p.Op) *errand {
	return &errand{make: func(context.Context) (p.Op, error) { return op, nil }}
}

// sent is the answer to an errand.
type sent struct {
	errand  *errand
	conv    p.ConversationID
	created bool
	receipt p.Receipt
	err     error
}

// An outbox holds what a person wants until the conversation has taken it. Commands
// run side by side; messages must not overtake each other.
type outbox struct {
	waiting []*errand
	flying  *errand
}

// messages are the texts that have not been taken yet.
func (b *outbox) messages() []*errand {
	var list []*errand
	for _, e := range append([]*errand{b.flying}, b.waiting...) {
		if e != nil && e.begins {
			list = append(list, e)
		}
	}
	return list
}

// send puts an errand into the outbox.
func (m *model) send(e *errand) tea.Cmd {
	m.out.waiting = append(m.out.waiting, e)
	return tea.Batch(m.flush(), m.spin())
}

// sendFirst puts an errand before those that wait.
func (m *model) sendFirst(e *errand) tea.Cmd {
	m.out.waiting = slices.Insert(m.out.waiting, 0, e)
	return m.flush()
}

// flush sends the next errand, if none is on its way.
func (m *model) flush() tea.Cmd {
	if m.out.flying != nil || m.opening != nil || m.trusting || len(m.out.waiting) == 0 || m.leaving != nil {
		return nil
	}
	e := m.out.waiting[0]
	m.out.waiting = m.out.waiting[1:]
	if m.conv.id == "" && !e.begins {
		return m.answered(e, p.Receipt{}, errNoConversation)
	}
	m.out.flying = e
	return m.carry(e)
}

var errNoConversation = errors.New("there is no conversation yet: send a message first")

// carry is the command that submits an errand, in a new conversation if there
// is none.
func (m *model) carry(e *errand) tea.Cmd {
	ctx, o, id, requested, created := m.ctx, m.o, m.conv.id, m.requested, m.created
	return func() tea.Msg {
		out := sent{errand: e, conv: id}
		op, err := e.make(ctx)
		if err != nil {
			out.err = err
			return out
		}
		if id == "" {
			if out.conv, out.err = create(ctx, o, requested); out.err != nil {
				return out
			}
			out.created = true
			created.Store(&out.conv)
			o.shown(out.conv)
		}
		out.receipt, out.err = o.Engine.Submit(ctx, out.conv, op)
		return out
	}
}

func create(ctx context.Context, o Options, requested p.Overrides) (p.ConversationID, error) {
	s, err := o.Settings(ctx)
	if err != nil {
		return "", err
	}
	return o.Engine.Create(ctx, requested.Apply(s))
}

// onSent takes the answer to an errand.
func (m *model) onSent(s sent) tea.Cmd {
	m.out.flying = nil
	m.created.Store(nil)
	if s.err != nil && m.leaving != nil {
		return nil // nobody would see it; the history has the text
	}
	if s.created {
		m.begin(s.conv, engine.Snapshot{}, 0)
	}
	if m.conv.feed == nil && m.conv.id == s.conv && s.err == nil { // it had ended; the conversation is open again
		m.follow(m.conv.last)
		return tea.Batch(m.conv.feed.Next, m.answered(s.errand, s.receipt, s.err), m.flush())
	}
	cmd := m.answered(s.errand, s.receipt, s.err)
	if s.created {
		cmd = tea.Batch(cmd, m.conv.feed.Next)
	}
	return tea.Batch(cmd, m.flush())
}

// answered deals with what became of an errand.
func (m *model) answered(e *errand, r p.Receipt, err error) tea.Cmd {
	if err != nil && e.begins {
		m.Return(e.text)
		m.stopNext = false
	}
	if e.then != nil {
		return e.then(r, err)
	}
	if err != nil {
		return m.ShowError(err)
	}
	if e.begins && m.stopNext {
		return m.stopTaken(e, r)
	}
	return nil
}

// submit sends what was written.
func (m *model) submit(a composer.Submit) tea.Cmd { return m.submitWith(a, nil) }

// submitWith sends what was written, with changes of the settings for its turn and those after it.
func (m *model) submitWith(a composer.Submit, o *p.Overrides) tea.Cmd {
	m.view.Bottom()
	load := m.image()
	return m.send(&errand{
		begins: true, text: m.comp.WithImages(a.Text, a.Images),
		make: func(ctx context.Context) (p.Op, error) {
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
			return p.UserTurn{Content: content, WhenBusy: a.Mode, Overrides: o}, nil
		},
	})
}

// image returns the function that makes content of the path of an image, or of its
// URL, which those have that were returned.
func (m *model) image() func(string) (p.Content, error) {
	read := m.o.Image
	return func(file string) (p.Content, error) {
		if composer.IsURL(file) {
			return p.Content{Type: p.ContentImage, ImageURL: file}, nil
		}
		if read == nil {
			return p.Content{}, errors.New("images cannot be read here")
		}
		return read(file)
	}
}

// written is a message as a text of which the composer makes what it was.
func (m *model) written(content []p.Content) string {
	var images []string
	for _, c := range content {
		if c.Type == p.ContentImage && c.Attached == "" {
			images = append(images, c.ImageURL)
		}
	}
	return m.comp.WithImages(p.Written(content), images)
}

// shell runs a command of the person's own.
func (m *model) shell(line string) tea.Cmd {
	text := "!" + line
	if m.Busy() {
		m.comp.SetText(text)
		return m.Hint(theme.Warn, "your own commands can run when the turn has ended")
	}
	m.view.Bottom()
	e := say(p.UserShell{Command: line})
	e.begins, e.text = true, text
	return m.send(e)
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

// recall gives back what waits to be sent.
func (m *model) recall() {
	var texts []string
	var keep []*errand
	for _, e := range m.out.waiting {
		if e.begins {
			texts = append(texts, e.text)
			continue
		}
		keep = append(keep, e)
	}
	m.out.waiting = keep
	m.Return(texts...)
}

// editPending takes the last message that waits back for editing.
func (m *model) editPending() tea.Cmd {
	if n := len(m.out.waiting); n > 0 && m.out.waiting[n-1].begins {
		e := m.out.waiting[n-1]
		m.out.waiting = m.out.waiting[:n-1]
		m.Return(e.text)
		return nil
	}
	waiting := m.conv.tr.Inputs
	if len(waiting) == 0 {
		return nil
	}
	in := waiting[len(waiting)-1]
	e := say(p.DeleteInput{Input: in.Input})
	e.then = func(_ p.Receipt, err error) tea.Cmd {
		if errors.Is(err, engine.ErrNoInput) {
			return m.Hint(theme.Warn, "too late: the message has been delivered")
		}
		if err != nil {
			return m.ShowError(err)
		}
		m.Return(m.written(in.Content))
		return nil
	}
	return m.send(e)
}
