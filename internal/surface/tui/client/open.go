package client

import (
	"context"
	"slices"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// An attempt is a conversation that is being opened.
type attempt struct {
	id     p.ConversationID // empty while it is being made
	cancel context.CancelFunc
}

// Opening reports whether a conversation is being opened.
func (c *Client) Opening() bool { return c.opening != nil }

// try begins an attempt in place of the one before.
func (c *Client) try(id p.ConversationID) (context.Context, *attempt) {
	c.CancelOpening()
	ctx, cancel := context.WithCancel(c.ctx)
	c.opening = &attempt{id, cancel}
	return ctx, c.opening
}

// CancelOpening ends the attempt to open a conversation, if there is one.
func (c *Client) CancelOpening() {
	if c.opening != nil {
		c.opening.cancel()
		c.opening = nil
	}
}

// opened is the answer to Open.
type opened struct {
	by *attempt
	id p.ConversationID
	Opened
	err error
}

// Open resumes a conversation.
func (c *Client) Open(id p.ConversationID) tea.Cmd {
	ctx, by := c.try(id)
	src := Source{Engine: c.o.Engine, Shown: c.o.shown, Owner: c.o.Owner}
	if id == c.o.Resume { // which this run was started for
		src.Overrides = c.o.Overrides
	}
	return func() tea.Msg {
		o, err := src.Open(ctx, id)
		return opened{by, id, o, err}
	}
}

func (c *Client) onOpened(o opened) tea.Cmd {
	if o.by != c.opening { // another one was chosen, or none
		return c.releaseUnused(o.id)
	}
	c.CancelOpening() // it is over
	if o.err != nil {
		c.recall() // what was meant for this one is not for another
		return c.screen.NotOpened(o.err)
	}
	left := c.leave(o.id)
	c.begin(o.id, o.Snapshot, o.After)
	return tea.Batch(left, c.Conv.Feed.Next, c.Flush(), c.screen.Opened(o.Opened))
}

// Begin begins a new conversation. It is created with its first message.
func (c *Client) Begin() tea.Cmd {
	left := c.leave("")
	c.begin("", engine.Snapshot{}, 0)
	return left
}

// loaded is the answer to LoadEarlier.
type loaded struct {
	id p.ConversationID
	Loaded
	err error
}

// LoadEarlier reads what was left out when the conversation was opened. It is
// folded beside, and takes the place of what is shown when it is whole.
func (c *Client) LoadEarlier() tea.Cmd {
	t := &c.Conv
	if t.From == 0 || t.Loading != nil || !t.CaughtUp() {
		return nil
	}
	ctx, stop := context.WithCancel(c.ctx)
	at := &atomic.Uint64{}
	t.Loading, t.stopLoad = at, stop
	e, id, to := c.o.Engine, t.ID, t.Last
	return func() tea.Msg {
		defer stop()
		out, err := Load(ctx, e, id, to, at)
		return loaded{id, out, err}
	}
}

func (c *Client) onLoaded(l loaded) tea.Cmd {
	t := &c.Conv
	if l.id != t.ID || t.Loading == nil {
		return nil
	}
	t.Loading, t.stopLoad = nil, nil
	if l.err != nil {
		return c.screen.ShowError(l.err)
	}
	if t.Feed != nil {
		t.Feed.Stop()
	}
	t.Transcript, t.Last, t.From, t.base = l.Transcript, l.To, 0, p.Usage{}
	t.Approvals, t.Questions = nil, nil
	for _, it := range t.Transcript.Items {
		t.index(it)
	}
	c.screen.Reloaded()
	c.follow(t.Last)
	return t.Feed.Next
}

// Fork continues in a copy of the conversation.
func (c *Client) Fork() tea.Cmd {
	if c.Conv.ID == "" {
		return c.screen.ShowError(ErrNoConversation)
	}
	e, id := c.o.Engine, c.Conv.ID
	ctx, by := c.try("")
	return func() tea.Msg {
		to, err := e.Fork(ctx, id, 0)
		return forked{by, to, err}
	}
}

type forked struct {
	by  *attempt
	id  p.ConversationID
	err error
}

func (c *Client) onForked(f forked) tea.Cmd {
	if f.by != c.opening {
		return nil
	}
	c.CancelOpening() // it is over
	if f.err != nil {
		return c.screen.ShowError(f.err)
	}
	return tea.Batch(c.Open(f.id), c.screen.Hint(theme.OK, "this is a copy; the original is unchanged"))
}

// WhenIdle does something that leaves the conversation: when no turn runs, or when
// the turn only waits for an approval, which it can do without this program.
func (c *Client) WhenIdle(do func() tea.Cmd) tea.Cmd {
	if !c.Busy() {
		return do()
	}
	if len(c.Conv.Approvals) == 0 || c.Stopping() || len(c.Out.Messages()) > 0 {
		return c.screen.ShowError(engine.ErrBusy)
	}
	ctx, e, id := c.ctx, c.o.Engine, c.Conv.ID
	return terminal.Do(func() func() tea.Cmd {
		snap, err := e.Resume(ctx, id)
		return func() tea.Cmd {
			switch {
			case err != nil:
				return c.screen.ShowError(err)
			case !snap.Waiting, c.Conv.ID != id, slices.ContainsFunc(c.Conv.Approvals, c.Conv.HasAnswered):
				return c.screen.ShowError(engine.ErrBusy)
			}
			return do()
		}
	})
}

// leave closes the conversation on the screen when another one takes its place,
// so that other processes can open it. If commands still run in it, it stays open.
func (c *Client) leave(next p.ConversationID) tea.Cmd {
	id, running := c.Conv.ID, len(c.Conv.Transcript.Running)
	c.LeftOpen = slices.DeleteFunc(c.LeftOpen, func(k p.ConversationID) bool { return k == next })
	if id == "" || id == next {
		return nil
	}
	if running > 0 {
		c.LeftOpen = append(c.LeftOpen, id)
		return c.screen.Hint(theme.Accent, "%s keeps running in the other conversation until you quit", humanize.Count(running, "background command"))
	}
	return c.release(id)
}

// releaseUnused closes a conversation that may have been opened for nothing.
func (c *Client) releaseUnused(id p.ConversationID) tea.Cmd {
	if id == c.Conv.ID || c.opening != nil && id == c.opening.id || slices.Contains(c.LeftOpen, id) {
		return nil
	}
	return c.release(id)
}

func (c *Client) release(id p.ConversationID) tea.Cmd {
	ctx, e := c.ctx, c.o.Engine
	return func() tea.Msg {
		if err := e.Release(ctx, id); err != nil && ctx.Err() == nil {
			return terminal.Done{Then: func() tea.Cmd { return c.screen.ShowError(err) }}
		}
		return nil
	}
}

// OtherOwner is the other process that runs the conversation on the screen, so that
// what runs in it does not end with this one.
func (c *Client) OtherOwner() (app.Owner, bool) {
	if c.o.RunBy == nil || c.Conv.ID == "" {
		return app.Owner{}, false
	}
	o := c.o.RunBy(c.Conv.ID)
	return o, o.PID != 0
}

// RunsTurn reports whether this process runs a turn that quitting stops. One that waits for an answer or
// for a limit is continued when the conversation is resumed.
func (c *Client) RunsTurn() bool {
	_, elsewhere := c.OtherOwner()
	tr := c.Conv.Transcript
	return tr.Active && !elsewhere && !c.Stopping() && len(c.Conv.Approvals) == 0 && tr.Hold == nil
}
