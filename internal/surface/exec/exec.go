// Package exec runs one turn for a script or a person at a shell: progress on
// one stream as it happens, the final answer alone on the other.
//
// What is printed where: the answer of a completed turn goes to Out and nothing
// else ever does; everything else (what runs, what it prints, how the turn ended, how to go
// on) goes to Err. When both are a terminal the answer is shown on it as it
// arrives, once.
package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options say what to run, and where to print.
type Options struct {
	Conversation p.ConversationID
	Turn         p.UserTurn
	Out          io.Writer
	Err          io.Writer
	OutTerminal  bool    // Out is a terminal
	ErrTerminal  bool    // Err is a terminal
	Ephemeral    bool    // there will be nothing to resume
	JSON         bool    // lines of JSON on Out instead
	Before       p.Usage // what the conversation has used so far, for JSON
}

// A drawing is a way to show a turn.
type drawing interface {
	event(p.Event)
	finish(engine.TurnEnd) error
}

// unread is how long a stopped run waits for somebody to read what it prints.
const unread = time.Second

// ErrAnswer says that the turn completed and its answer could not be written.
var ErrAnswer = errors.New("write the answer")

// Run runs the turn to its end. When ctx ends the turn is stopped, and Run
// returns when it has stopped, also when nobody reads what is printed.
func Run(ctx context.Context, e engine.Engine, o Options) (engine.TurnEnd, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var pr drawing = newPrinter(o)
	if o.JSON {
		pr = newJSONPrinter(o, func() { cancel(ErrAnswer) })
	}
	done := make(chan struct{})
	var end engine.TurnEnd
	var err error
	go func() { // ends with the turn; left behind only if its output is not read
		defer close(done)
		end, err = engine.RunTurn(ctx, e, o.Conversation, o.Turn, pr.event)
		if err == nil {
			err = pr.finish(end)
		}
	}()
	select {
	case <-done:
		return end, err
	case <-ctx.Done():
	}
	select {
	case <-done:
		return end, err
	case <-time.After(unread):
	}
	return stopped(ctx, e, o.Conversation, done, &end, &err)
}

// stopped sees a stopped turn to its end when printing is stuck.
func stopped(ctx context.Context, e engine.Engine, id p.ConversationID, done chan struct{}, end *engine.TurnEnd, err *error) (engine.TurnEnd, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan engine.TurnEnd, 1) // room for the answer: nobody may be left to take it
	go func() {                          // ends with life
		snap, err := e.Resume(life, id)
		if err != nil {
			return
		}
		if !snap.Active {
			over <- engine.TurnEnd{Turn: snap.Turn, End: p.TurnEnded{Reason: snap.Ended}}
			return
		}
		if end, err := engine.FollowTurn(life, e, id, snap.Turn, snap.Last, func(p.Event) {}); err == nil {
			over <- end
		}
	}()
	select {
	case <-done:
		return *end, *err
	case t := <-over:
		return t, nil
	}
}

// GoOn says how to take a conversation up again.
func GoOn(id p.ConversationID) string { return fmt.Sprintf("fermata exec resume %s PROMPT", id) }

// finish prints the last line and, if the turn completed, the answer.
func (pr *printer) finish(end engine.TurnEnd) error {
	pr.endLine(end)
	if end.End.Reason != p.Completed || pr.live && pr.o.OutTerminal {
		return nil
	}
	text := end.Message
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err := io.WriteString(pr.o.Out, text); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}
