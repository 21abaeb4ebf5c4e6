package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// A recorder is an engine that notes what is submitted to which conversation, and a screen that notes what is shown.
type recorder struct {
	engine.Engine
	ops    []string
	refuse error
	errs   []error
}

func (r *recorder) Submit(_ context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	r.ops = append(r.ops, fmt.Sprintf("%s %+v", id, op))
	return p.Receipt{}, r.refuse
}

func (*recorder) Subscribe(context.Context, p.ConversationID, p.Cursor) iter.Seq2[p.Event, error] {
	return func(func(p.Event, error) bool) {}
}

func (*recorder) Hint(theme.Role, string, ...any) tea.Cmd { return nil }

func (r *recorder) ShowError(err error) tea.Cmd {
	r.errs = append(r.errs, err)
	return nil
}
func (*recorder) Return(...string)                     {}
func (*recorder) Reoffer([]p.InputID)                  {}
func (*recorder) ConversationChanged(p.ConversationID) {}
func (*recorder) Opened(Opened) tea.Cmd                { return nil }
func (*recorder) NotOpened(error) tea.Cmd              { return nil }
func (*recorder) Reloaded()                            {}
func (*recorder) Quitting() bool                       { return false }

// in returns a client with a conversation on the screen.
func in(t *testing.T, id p.ConversationID) (*Client, *recorder) {
	r := &recorder{}
	c := New(t.Context(), Options{Engine: r}, r)
	c.begin(id, engine.Snapshot{}, 0)
	return c, r
}

// run carries out a command and those that follow from it.
func (c *Client) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			c.run(cmd)
		}
	default:
		next, _ := c.Update(msg)
		c.run(next)
	}
}

// What is asked for in one conversation never reaches another that has come on the screen, although its turn and call have the
// same numbers.
func TestAnswersStayInTheirConversation(t *testing.T) {
	call := p.CallID{Turn: 1, Response: 1}
	for name, tt := range map[string]struct {
		ask  func(*Client) tea.Cmd
		want p.Op
	}{
		"approval": {func(c *Client) tea.Cmd { return c.Approve(p.Approve{Call: call, Decision: p.Approved}, nil) }, p.Approve{Call: call, Decision: p.Approved}},
		"stop":     {func(c *Client) tea.Cmd { return c.interrupt(1) }, p.Interrupt{Turn: 1}},
		"question": {func(c *Client) tea.Cmd {
			return c.AnswerQuestion(&p.ElicitationRequested{Call: call, Number: 1}, p.ElicitationDecline, nil)
		}, p.AnswerElicitation{Call: call, Number: 1, Action: p.ElicitationDecline}},
		"kill":   {func(c *Client) tea.Cmd { return c.Send(NewOp(p.KillBackground{ID: 1})) }, p.KillBackground{ID: 1}},
		"rename": {func(c *Client) tea.Cmd { return c.Send(NewOp(p.Rename{Title: "a"})) }, p.Rename{Title: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, seen := in(t, "from")
			c.Out.Send(NewOp(p.Compact{})) // it keeps what goes through the outbox waiting
			cmd := tt.ask(c)
			c.begin("to", engine.Snapshot{}, 0)
			c.Out.Done()
			c.run(cmd)
			c.run(c.Flush())
			if want := []string{fmt.Sprintf("from %+v", tt.want)}; !slices.Equal(seen.ops, want) {
				t.Errorf("submitted were %q, want %q", seen.ops, want)
			}
		})
	}
}

// An answer that is refused after another conversation came on the screen does not open that one's approval again.
func TestRefusedAnswerOfTheConversationBefore(t *testing.T) {
	c, seen := in(t, "from")
	seen.refuse = engine.ErrBusy
	call := p.CallID{Turn: 1, Response: 1}
	answer := c.Approve(p.Approve{Call: call, Decision: p.Approved}, nil)
	c.begin("to", engine.Snapshot{}, 0)
	c.Conv.answered[call] = true
	c.run(answer)
	if !c.Conv.answered[call] || len(seen.errs) != 1 {
		t.Errorf("what was answered here is asked again, or the error is not shown: %v", seen.errs)
	}
}

// A permission that cannot be saved approves nothing, and the user is asked again.
func TestPermissionThatIsNotSaved(t *testing.T) {
	c, seen := in(t, "from")
	call := p.CallID{Turn: 1, Response: 1}
	c.run(c.Approve(p.Approve{Call: call, Decision: p.Approved}, func() error { return errors.New("disk full") }))
	if len(seen.ops) != 0 || c.Conv.answered[call] || len(seen.errs) != 1 {
		t.Errorf("submitted %q, answered %v, errors %v", seen.ops, c.Conv.answered, seen.errs)
	}
}

// An interrupt that is refused is shown, and can be tried again.
func TestStopThatIsRefused(t *testing.T) {
	c, seen := in(t, "from")
	c.Conv.Transcript.Active, c.Conv.Transcript.Turn = true, 1
	seen.refuse = errors.New("no such luck")
	c.run(c.Stop())
	if c.Stopping() || len(seen.errs) != 1 {
		t.Fatalf("stopping %v, errors %v", c.Stopping(), seen.errs)
	}
	seen.refuse = nil
	c.run(c.Stop())
	if !c.Stopping() || len(seen.ops) != 2 {
		t.Errorf("stopping %v, submitted %q", c.Stopping(), seen.ops)
	}
}
