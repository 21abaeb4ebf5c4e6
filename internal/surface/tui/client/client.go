package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options configure a client.
type Options struct {
	// Engine is that of all conversations.
	Engine engine.Engine
	// Settings are those of a new conversation. It is called from a command.
	Settings func(context.Context) (p.Settings, error)
	// Resume is the conversation to begin with; empty is a new one.
	Resume p.ConversationID
	// Overrides are what this run changes of the settings of the conversation that it resumes. May be nil.
	Overrides func(p.Settings) p.Overrides
	// Shown is called with each conversation that is created or resumed. May be nil.
	Shown func(p.ConversationID)
	// Owner describes a process. May be nil.
	Owner func(pid int) string
	// RunBy returns the other process that runs a conversation, so that its turn continues when
	// this program ends; zero if this one does. It does not block, and is called from Update. May be nil.
	RunBy func(p.ConversationID) app.Owner
}

// A Reporter shows what became of something.
type Reporter interface {
	// Hint shows a short remark in place of the status line.
	Hint(role theme.Role, format string, args ...any) tea.Cmd
	// ShowError shows an error, with what to do about it.
	ShowError(error) tea.Cmd
}

// A Screen is what a client uses of the program that shows the conversation. Its methods are called from Update only.
type Screen interface {
	Reporter
	// Return puts texts that were not delivered before what is written.
	Return(texts ...string)
	// Reoffer offers returned messages again that were not sent after all.
	Reoffer(ids []p.InputID)
	// ConversationChanged is called when Conv is another one, with the one that was there before.
	ConversationChanged(before p.ConversationID)
	// Opened is called when Conv is a conversation that was resumed.
	Opened(Opened) tea.Cmd
	// NotOpened is called when a conversation could not be resumed.
	NotOpened(error) tea.Cmd
	// Reloaded is called when the transcript is another one, because the earlier part was loaded.
	Reloaded()
	// Quitting reports whether the program is about to end.
	Quitting() bool
}

// A Client is this program's side of the engine: the conversation on the screen, what is on its way to it, and the
// conversation that is being opened. It belongs to the goroutine that calls Update.
type Client struct {
	Conv Conversation // the one on the screen; changed in place
	Out  Outbox       // ops that the conversation has not taken
	Hold bool         // ops wait until it is known whether the directory is trusted

	// LeftOpen are conversations that are not on the screen, and open because commands run in them.
	LeftOpen []p.ConversationID

	ctx    context.Context
	o      Options
	screen Screen

	fresh     p.Settings                        // of the next conversation
	requested p.Overrides                       // by the user, for a conversation that has not begun
	opening   *attempt                          // nil if none is being opened
	before    p.ConversationID                  // the one before that on the screen
	created   *atomic.Pointer[p.ConversationID] // one that was created, until Update knows of it
	stopTurn  p.TurnID                          // the turn that was asked to stop
	stopNext  bool                              // stop what the message leads to that is on its way
}

// New returns a client with a conversation that has not begun.
func New(ctx context.Context, o Options, s Screen) *Client {
	return &Client{
		ctx: ctx, o: o, screen: s, created: &atomic.Pointer[p.ConversationID]{},
		Conv: newConversation("", engine.Snapshot{}, 0),
	}
}

// Context ends with the program.
func (c *Client) Context() context.Context { return c.ctx }

// Engine is that of all conversations.
func (c *Client) Engine() engine.Engine { return c.o.Engine }

// Conversation is the one on the screen. Its id is empty before its first message.
func (c *Client) Conversation() (p.ConversationID, *transcript.Transcript) {
	return c.Conv.ID, c.Conv.Transcript
}

// Settings are those in force, or those that the next conversation begins with.
func (c *Client) Settings() p.Settings {
	if c.Conv.ID != "" {
		return c.Conv.Transcript.Settings
	}
	return c.requested.Apply(c.fresh)
}

// SetFresh sets the settings of the next conversation.
func (c *Client) SetFresh(s p.Settings) { c.fresh = s }

// Configure changes the settings of the turns to come, and shows a text when that is done.
func (c *Client) Configure(o p.Overrides, done string) tea.Cmd {
	if c.Conv.ID == "" {
		c.requested = merge(c.requested, o)
		return c.screen.Hint(theme.OK, "%s", done)
	}
	return c.Send(NewOp(p.Configure{Overrides: o}).ThenHint(c.screen, "%s", done))
}

// merge lays b over a, as far as this program sets them.
func merge(a, b p.Overrides) p.Overrides {
	a.Provider = cmp.Or(b.Provider, a.Provider)
	a.Model = cmp.Or(b.Model, a.Model)
	a.Effort = cmp.Or(b.Effort, a.Effort)
	a.Approval = cmp.Or(b.Approval, a.Approval)
	a.Sandbox = cmp.Or(b.Sandbox, a.Sandbox)
	a.Plan = cmp.Or(b.Plan, a.Plan)
	return a
}

// Update takes the answers to the client's commands. It reports false for other messages.
func (c *Client) Update(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case Sent:
		return c.onSent(msg), true
	case interrupted:
		return c.onInterrupted(msg), true
	case approved:
		return c.onApproved(msg), true
	case opened:
		return c.onOpened(msg), true
	case loaded:
		return c.onLoaded(msg), true
	case forked:
		return c.onForked(msg), true
	}
	return nil, false
}

// begin puts a conversation on the screen and follows it after the cursor.
func (c *Client) begin(id p.ConversationID, snap engine.Snapshot, after p.Cursor) {
	c.Conv.stopFollowing()
	before := c.Conv.ID
	c.before = cmp.Or(before, c.before)
	c.Conv = newConversation(id, snap, after)
	c.stopTurn = 0
	c.screen.ConversationChanged(before)
	if id != "" {
		c.follow(after)
	}
}

func (c *Client) follow(after p.Cursor) {
	ctx, stop := context.WithCancel(c.ctx)
	c.Conv.Feed = Follow(ctx, c.o.Engine.Subscribe(ctx, c.Conv.ID, after), stop)
}

// Last is the conversation that the program was left with; empty if there was none.
func (c *Client) Last() p.ConversationID {
	if id := c.created.Load(); c.Conv.ID == "" && id != nil { // the program ended before Update knew of it
		return *id
	}
	return cmp.Or(c.Conv.ID, c.before)
}

// Apply folds an event of the conversation, and returns the items that are new or have changed.
func (c *Client) Apply(e p.Event) []*transcript.Item {
	items := c.Conv.Apply(e)
	if !c.Conv.Transcript.Active {
		c.stopTurn = 0
	}
	return items
}

// approved is the answer to an approval's answer.
type approved struct {
	conversation p.ConversationID
	call         p.CallID
	err          error
}

// Approve answers an approval. remember, which may be nil, is called first: if it fails, nothing is approved.
func (c *Client) Approve(answer p.Approve, remember func() error) tea.Cmd {
	c.Conv.answered[answer.Call] = true
	if answer.Decision == p.Abort {
		c.stopTurn = c.Conv.Transcript.Turn
	}
	ctx, e, id := c.ctx, c.o.Engine, c.Conv.ID
	return func() tea.Msg {
		if remember != nil {
			if err := remember(); err != nil {
				return approved{id, answer.Call, fmt.Errorf("the permission was not saved, and nothing was approved: %w", err)}
			}
		}
		_, err := e.Submit(ctx, id, answer)
		return approved{id, answer.Call, err}
	}
}

func (c *Client) onApproved(a approved) tea.Cmd {
	if a.err == nil {
		return nil
	}
	if a.conversation != c.Conv.ID { // what is on the screen was not answered
		return c.screen.ShowError(fmt.Errorf("an answer in the conversation before was not taken: %w", a.err))
	}
	c.stopTurn = 0
	if errors.Is(a.err, engine.ErrNoApproval) {
		return c.answeredElsewhere()
	}
	delete(c.Conv.answered, a.call) // ask again
	return c.screen.ShowError(a.err)
}

func (c *Client) answeredElsewhere() tea.Cmd {
	return c.screen.Hint(theme.Accent, "that was answered elsewhere")
}

// AnswerQuestion answers a question of an MCP server.
func (c *Client) AnswerQuestion(q *p.ElicitationRequested, action p.ElicitationAction, content []byte) tea.Cmd {
	answered := c.Conv.answeredQuestions // of this conversation, whichever is on the screen later
	answered[QuestionIDOf(q)] = true
	op := NewOp(p.AnswerElicitation{Call: q.Call, Number: q.Number, Action: action, Content: content})
	op.Then = func(_ p.Receipt, err error) tea.Cmd {
		switch {
		case errors.Is(err, engine.ErrNoElicitation):
			return c.answeredElsewhere()
		case err != nil:
			delete(answered, QuestionIDOf(q)) // ask again
			return c.screen.ShowError(err)
		}
		return nil
	}
	return c.Send(op)
}
