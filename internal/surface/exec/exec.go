// Package exec runs one turn for a script or a person at a shell: progress on
// one stream as it happens, the final answer alone on the other.
//
// What is printed where: the answer of a completed turn goes to Out and nothing
// else ever does; everything else (what runs, what it prints, how the turn ended, how to go
// on) goes to Err. When both are a terminal the answer is shown on it as it
// arrives, once.
package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec/lines"
	"github.com/fermata-agent/fermata/internal/surface/exec/questions"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Options say what to run, where to print it, and how approvals are answered.
type Options struct {
	Request
	Output
	Report
	Approvals

	// Detach is closed when the turn is to be left to its owner. It is nil if this process is the owner.
	Detach <-chan struct{}
}

// A Request is what to run.
type Request struct {
	Conversation p.ConversationID // which has to exist
	Turn         p.UserTurn       // the message that begins or joins a turn
	Approve      *p.Approve       // instead of Turn: answer this, and resume its turn
	TryNow       *p.TryNow        // instead of Turn: end the hold of a turn, and resume it
	Held         follow.Held      // with TryNow: the turn
}

// An Output is where a turn is printed, and how.
type Output struct {
	Out         io.Writer                  // takes the answer, or lines of JSON
	Err         io.Writer                  // takes everything else
	OutTerminal bool                       // Out is a terminal
	ErrTerminal bool                       // Err is a terminal
	Plain       bool                       // the terminal is one that only prints: no status line
	Width       func() int                 // of the terminal; nil or 0 if that is not known
	Color       bool                       // of what is progress; never of the answer on Out
	HideThought bool                       // leave out what the model thought
	Markdown    func(string, int) []string // for Show: draws the model's text as lines of a width, safe for a terminal; nil leaves it as it is
	JSON        bool                       // lines of JSON on Out instead
}

// A Report is what is printed of the conversation besides its events.
type Report struct {
	Before      p.Usage                       // what the conversation has used so far, for JSON
	Cost        func(p.Usage) (float64, bool) // of the model, in US dollars, if known; may be nil
	Notices     []string                      // what there is to know of the conversation, for JSON
	Ephemeral   bool                          // there will be nothing to resume
	ResumeFlags string                        // what to resume it needs besides its name
	OwnStop     func() bool                   // see lines.Options
}

// Approvals say who answers the approvals of a turn. The zero value denies them.
type Approvals struct {
	Park   bool    // leave a turn that needs an approval, to be answered later
	Prompt *Prompt // if not nil, the user at the terminal answers

	// Refused is called, if set, for each call that policy or the sandbox refused while no client
	// could be asked.
	Refused func(Refusal)
}

// A Refusal is a call that was refused.
type Refusal struct {
	What   string // the model wanted
	Why    string // for people
	Reason p.RefusalReason
}

// A drawing is a way to show a turn.
type drawing interface {
	Event(p.Event)
	Finish(engine.TurnEnd) error
	Leave() // instead of Finish: the turn is parked, and has no end
}

// readTimeout is how long a stopped run waits for a client to read what it prints.
const readTimeout = time.Second

// A ParkedError says that the turn waits for approvals, and was left so.
type ParkedError struct {
	Hold *p.Held  // or: the limit of the service that it waits for
	Asks []string // what for: the call, and what it would do
}

func (e *ParkedError) Error() string {
	if e.Hold != nil {
		return transcript.HoldText(e.Hold)
	}
	return "waiting for approval of " + strings.Join(e.Asks, ", ")
}

// ErrAnswerNotRead says that the turn completed, and that its answer was not read
// before the run was stopped.
var ErrAnswerNotRead = errors.New("the answer was not read")

// ErrDetached says that the turn continues in the process that owns it.
var ErrDetached = errors.New("detached")

// ErrAnswer says that the turn completed and its answer could not be written.
var ErrAnswer = errors.New("write the answer")

// Run runs the turn to its end. When ctx ends the turn is stopped, and Run
// returns when it has stopped, also when what is printed is not read.
func Run(ctx context.Context, e engine.Engine, o Options) (engine.TurnEnd, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	left := false // the turn is parked: cancelling would stop it
	defer func() {
		if !left {
			cancel(nil)
		}
	}()
	quit := make(chan struct{})
	defer close(quit)
	var pr drawing
	switch human := newPrinter(o); {
	case o.JSON:
		pr = newLines(o, func(err error) {
			if o.Detach == nil {
				cancel(fmt.Errorf("%w: %w", ErrAnswer, err))
			}
		})
	case o.ErrTerminal && (!o.Plain || o.Prompt != nil):
		pr = watch(human, quit)
	default:
		pr = human
	}
	done, parked := make(chan struct{}), make(chan struct{})
	var end engine.TurnEnd
	var err error
	approvals := &approvalState{o: o, e: e, wants: map[p.CallID]string{}}
	if w, ok := pr.(*watched); ok && o.Prompt != nil {
		approvals.person = newPrompter(ctx, e, o, w)
	}
	go func() { // ends with the turn; left behind only if its output is not read, or the turn is parked
		defer close(done)
		fn := func(ev p.Event) {
			if approvals.left { // what happens now is not ours to tell
				return
			}
			pr.Event(ev)
			if approvals.event(ctx, ev); approvals.left {
				pr.Leave()
				close(parked)
			}
		}
		end, err = begin(ctx, receiptEngine{e, func(ctx context.Context, r p.Receipt) {
			if approvals.onAccepted(ctx, r); approvals.left {
				pr.Leave()
				close(parked)
			} else if approvals.guest {
				for _, ev := range follow.CatchUp(ctx, e, o.Conversation, r.Turn, r.Seq) {
					pr.Event(ev)
				}
			}
		}}, o, fn)
		if err == nil {
			err = pr.Finish(end)
		}
	}()
	select {
	case <-done:
		return end, err
	case <-o.Detach:
		left = true
		return engine.TurnEnd{}, ErrDetached
	case <-parked:
		left = true
		return engine.TurnEnd{}, &ParkedError{Asks: approvals.waits, Hold: approvals.hold}
	case <-ctx.Done():
	}
	select {
	case <-done:
		return end, err
	case <-time.After(readTimeout):
	}
	return awaitStopped(ctx, e, o.Conversation, done, &end, &err)
}

// jsonLines writes lines of JSON; one that could not be written is an answer that could not.
type jsonLines struct{ *lines.Printer }

func newLines(o Options, onFail func(error)) jsonLines {
	return jsonLines{lines.New(lines.Options{
		Out: o.Out, Conversation: o.Conversation, Before: o.Before, Cost: o.Cost, HideThought: o.HideThought, Notices: o.Notices, OwnStop: o.OwnStop,
	}, onFail)}
}

func (l jsonLines) Finish(end engine.TurnEnd) error {
	if err := l.Printer.Finish(end); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

func begin(ctx context.Context, e engine.Engine, o Options, fn func(p.Event)) (engine.TurnEnd, error) {
	if o.Approve != nil {
		end, err := engine.RunApproval(ctx, e, o.Conversation, *o.Approve, fn)
		for err == nil && end.End.Reason == p.Completed && ctx.Err() == nil {
			next, more, failed := followQueued(ctx, e, o.Conversation, end, fn)
			if failed != nil || !more {
				return end, failed
			}
			end = next
		}
		return end, err
	}
	if o.TryNow != nil {
		return follow.TryNow(ctx, e, o.Conversation, *o.TryNow, o.Held, fn)
	}
	return engine.RunTurn(ctx, e, o.Conversation, o.Turn, fn)
}

// followQueued follows the turn that a message started which waited for the one before to end. When ctx
// ends the turn is interrupted.
func followQueued(ctx context.Context, e engine.Engine, id p.ConversationID, last engine.TurnEnd, fn func(p.Event)) (engine.TurnEnd, bool, error) {
	snap, err := e.Resume(context.WithoutCancel(ctx), id)
	if err != nil || !snap.Active || snap.Turn <= last.Turn {
		return last, false, err
	}
	end, err := follow.Turn(ctx, e, id, snap.Turn, last.Seq, fn)
	return end, true, err
}

// approvalState deals with approvals: a person answers, or the turn is left waiting, or the
// answer is no because there is no user.
type approvalState struct {
	o      Options
	e      engine.Engine
	person *prompter // nil if there is no user
	open   bool
	waits  []string // what is open
	hold   *p.Held  // the limit that the turn waits for
	guest  bool     // the turn was begun by another client, which may answer
	left   bool     // the turn is left; nothing here is changed any more

	wants map[p.CallID]string // what calls are about
}

func (a *approvalState) event(ctx context.Context, ev p.Event) {
	a.refusals(ev)
	ask, ok := ev.Body.(*p.ApprovalRequested)
	a.open = a.open || ok
	if ok {
		a.waits = append(a.waits, fmt.Sprintf("%s: %s", ask.Call, questions.Subject(ask)))
	}
	if b, ok := ev.Body.(*p.ApprovalResolved); ok {
		a.waits = slices.DeleteFunc(a.waits, func(w string) bool { return strings.HasPrefix(w, b.Call.String()+": ") })
	}
	life := context.WithoutCancel(ctx)
	answer := func(op p.Op) { _, _ = a.e.Submit(life, a.o.Conversation, op) } // another client may have answered first
	switch q, elicited := ev.Body.(*p.ElicitationRequested); {
	case elicited && a.person == nil && !a.guest:
		answer(p.AnswerElicitation{Call: q.Call, Number: q.Number, Action: p.ElicitationDecline})
	case a.person != nil:
		a.person.event(ev)
	case ok && !a.o.Park && !a.guest:
		answer(p.Approve{Call: ask.Call, Decision: p.Denied, Message: "there is no interactive client"})
	case a.open && a.o.Park:
		if snap, err := a.e.Resume(life, a.o.Conversation); err == nil && snap.Waiting {
			a.left = true
		}
	}
}

// refusals reports what was refused without a question.
func (a *approvalState) refusals(ev p.Event) {
	if a.o.Refused == nil {
		return
	}
	switch b := ev.Body.(type) {
	case *p.ToolCall:
		a.wants[b.Call] = cmp.Or(transcript.RequestLine(b.Name, b.Arguments), b.Name)
	case *p.CommandStarted:
		a.wants[b.Call] = transcript.CommandLine(b.Command)
	case *p.ApprovalRequested:
		if a.wants[b.Call] = questions.Subject(b); !a.o.Park && !a.guest && a.person == nil {
			a.o.Refused(Refusal{questions.Subject(b), b.Reason, b.RefusedFor})
		}
	case *p.ElicitationRequested:
		if !a.guest && a.person == nil {
			why := fmt.Sprintf("declined, since there is no interactive client: %.500s", strings.Join(strings.Fields(b.Message), " "))
			a.o.Refused(Refusal{a.wants[b.Call], why, p.RefusedQuestion})
		}
	case *p.ToolOutput:
		if b.Refused != "" {
			a.o.Refused(Refusal{a.wants[b.Call], b.Refused, b.RefusedFor})
		}
		delete(a.wants, b.Call)
	}
}

// onAccepted leaves a turn that waited for an approval before our message came: the message is delivered when
// a client has answered.
func (a *approvalState) onAccepted(ctx context.Context, r p.Receipt) {
	if r.State == p.TakenStarted {
		return
	}
	a.guest = r.State == p.TakenSteered
	snap, err := a.e.Resume(ctx, a.o.Conversation)
	if err == nil && snap.Waiting {
		a.waits, a.hold, a.left = questions.Pending(ctx, a.e, snap), snap.Hold, true
	}
}

// A receiptEngine tells what became of a message before its events are followed.
type receiptEngine struct {
	engine.Engine
	accepted func(context.Context, p.Receipt)
}

func (e receiptEngine) Submit(ctx context.Context, id p.ConversationID, op p.Op) (p.Receipt, error) {
	r, err := e.Engine.Submit(ctx, id, op)
	if _, ok := op.(p.UserTurn); ok && err == nil {
		e.accepted(ctx, r)
	}
	return r, err
}

// awaitStopped sees a stopped turn to its end when printing is stuck.
func awaitStopped(ctx context.Context, e engine.Engine, id p.ConversationID, done chan struct{}, end *engine.TurnEnd, err *error) (engine.TurnEnd, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan engine.TurnEnd, 1) // buffered: the receiver may have left
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
		if t.End.Reason == p.Completed {
			return t, ErrAnswerNotRead
		}
		return t, nil
	}
}

// ResumeCommand is the command that resumes the conversation.
func (o Options) ResumeCommand() string {
	words := []string{"fermata exec resume", string(o.Conversation), "PROMPT"}
	if o.ResumeFlags != "" {
		words = slices.Insert(words, 1, o.ResumeFlags)
	}
	return strings.Join(words, " ")
}

// Finish prints the last line and, if the turn completed, the answer.
func (pr *printer) Finish(end engine.TurnEnd) error {
	pr.clear()
	pr.endLine(end)
	if end.End.Reason != p.Completed || pr.live && pr.o.OutTerminal {
		return nil
	}
	text := end.Message
	if pr.o.OutTerminal {
		text = safetext.Strip(text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err := io.WriteString(pr.o.Out, text); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}
