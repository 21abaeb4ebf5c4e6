// Package conversation runs one conversation. One goroutine owns all of its
// state; everybody else sends it messages.
//
// The owner is three things: the fold of the events (package fold), a queue of
// effects, and the workers. For each input it asks package turn for the events that
// follow, appends them to the journal, and carries out the effect of an event when
// the event is durable, so that nothing runs that the journal does not know. Only
// stopping does not wait for the disk. Readers read the journal, not the owner.
//
// Start reading at owner.run. record.go appends events, effects.go and workers.go
// hold what they set in motion, open.go what happens after a crash.
package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// Config is what a conversation needs of the world.
type Config struct {
	// Model returns the client for the settings of a turn.
	Model func(p.Settings) (model.Client, error)

	// Tools returns the tools for the settings of a turn, in the order in which
	// the model is offered them.
	Tools func(p.Settings) []tool.Tool

	// AwaitTools returns a function that waits until the tools for some settings are
	// known, nil if they are. It must not block; what it returns is called by a worker of
	// the turn, before its first request, and returns warnings for people, or why the
	// turn cannot be run. Afterwards Tools is asked again. May be nil.
	AwaitTools func(p.Settings) func(context.Context) (warnings []string, err error)

	// Allow reports why something must not run with some settings. It is asked before each
	// op that runs something or changes settings. May be nil.
	Allow func(p.Settings) error

	// Reclaim ends what is left of a process that a crash left behind. May be nil.
	Reclaim func(ctx context.Context, process json.RawMessage) (int, error)

	// Settle completes a patch that was interrupted, or takes it back, from
	// what PatchStarted recorded of it; note is for people. After an error nothing
	// is known. If Settle is nil, patches stay as they are.
	Settle func(record json.RawMessage, committed bool) (applied bool, note string, err error)

	// Window returns how many tokens the model of some settings takes, 0 if that is
	// not known. May be nil.
	Window func(p.Settings) int64

	// Effort returns the reasoning effort to ask for when the settings name none; empty
	// asks for none. May be nil.
	Effort func(p.Settings) string

	// DefaultWindow is how many tokens a model is taken to accept of which nothing is
	// known. If it is 0 the service's refusals show it.
	DefaultWindow int64

	// For returns what the turns of a client are run with that brings something of its own
	// (see Client): what it says of the model, the tools and Notify counts. It may be called from any
	// goroutine. May be nil.
	For func(brings any) (Config, error)

	// Notify is called for each turn that ended, also after a crash. It
	// must not block. May be nil.
	Notify func(p.TurnSummary)

	// NotifyWaiting is called for each turn that begins to wait for a person or a limit,
	// with the event that says so: ApprovalRequested, ElicitationRequested or Held. It must
	// not block. May be nil.
	NotifyWaiting func(p.TurnSummary, p.Body)

	// Ended is called for each turn that ended, and Waits for each that begins to wait as for NotifyWaiting,
	// whoever started it. They must not block. May be nil.
	Ended func(p.TurnSummary)
	Waits func(p.TurnSummary)

	// Panicked keeps the trace of a model or a tool that panicked: the turn only records that there was an
	// internal error. A panic of the owner ends its conversation as a crash of the process would, and the next
	// op recovers it. If it is nil, that panic ends the process.
	Panicked panics.Log

	// ID and Settings are those of a new conversation, and of one whose first
	// record is lost.
	ID       p.ConversationID
	Settings p.Settings

	// Instructions returns the built-in instructions for the settings of a turn.
	// May be nil.
	Instructions func(p.Settings) string

	// Environment describes the machine for the model, but for git. It
	// is called when a turn begins, and must not block. May be nil.
	Environment func(p.Settings) p.Environment

	// Version is that of the program.
	Version string

	StopBound time.Duration // how long a stopped turn waits for its workers; 0 is 1.5 s
	// Retries says how often a failed model request is made again: how often if
	// nothing came back, and how often if a response broke off. Nil is five and five.
	Retries func(p.Settings) (request, stream int)

	Backoff time.Duration // wait before the first retry; 0 is DefaultBackoff

	// MaxParallel is how many calls of a turn run at the same time; 0 is turn.DefaultParallel. With 1 they run
	// one at a time, in order.
	MaxParallel int

	// MaxWait is how long a service may ask to wait before that is a limit, at which
	// the turn is held; 0 is 60 s.
	MaxWait time.Duration

	// KeepTokens is how many tokens of the user's own messages a compaction keeps
	// verbatim; 0 is 20,000. In a small window it is less.
	KeepTokens int64

	// A conversation in which nothing goes on closes itself after IdleAfter, or
	// after IdleFollowed while a client follows it. Zero is never.
	IdleAfter, IdleFollowed time.Duration

	// KeepWaiting says that a turn which waits for an approval, or for a limit, does not count as nothing.
	KeepWaiting bool
}

// DefaultBackoff is the wait before the first retry.
const DefaultBackoff = 200 * time.Millisecond

func (c Config) withDefaults() Config {
	if c.StopBound == 0 {
		c.StopBound = 1500 * time.Millisecond
	}
	if c.MaxParallel == 0 {
		c.MaxParallel = turn.DefaultParallel
	}
	if c.Retries == nil {
		c.Retries = func(p.Settings) (int, int) { return 5, 5 }
	}
	if c.Tools == nil { // whoever only looks or repairs has none
		c.Tools = func(p.Settings) []tool.Tool { return nil }
	}
	if c.Backoff == 0 {
		c.Backoff = DefaultBackoff
	}
	if c.KeepTokens == 0 {
		c.KeepTokens = 20_000
	}
	return c
}

// ErrClosed is the answer to an op that comes when the conversation is closed.
var ErrClosed = errors.New("conversation is closed")

// ErrRevert is the answer to a Revert that cannot be done.
var ErrRevert = errors.New("cannot revert to before that turn")

// A Conversation is a handle; it holds no state of its own. Its methods may be
// called from any goroutine.
type Conversation struct {
	journal  journal.Journal
	ops      chan request  // many senders; received only by owner.run
	inbox    chan message  // the turn's workers send; received only by owner.run
	unfollow chan struct{} // a follower has left
	quit     chan struct{} // ends the owner at once
	done     chan struct{} // closed when the owner has ended
	err      error         // why the journal failed, if it has; set before done is closed

	forClient func(brings any) (Config, error) // Config.For
}

// A request is an op and where its answer goes.
type request struct {
	op     any // a protocol.Op, or one of the types that end in Op here
	answer chan answer
	from   Client
	brings *Config // what from brings; nil if that is nothing
}

type answer struct {
	receipt  p.Receipt
	snapshot Snapshot
	released bool
	err      error
}

type (
	snapshotOp struct{ look bool } // look: see Look
	closeOp    struct{}
	stopOp     struct{ because *p.Error }
)

// Submit sends op to the owner and returns when it is recorded, or refused. An
// Interrupt is answered at once: it does not wait for the disk. When ctx ends
// first the op may still be taken.
func (c *Conversation) Submit(ctx context.Context, op p.Op) (p.Receipt, error) {
	a, err := c.ask(ctx, op)
	return a.receipt, err
}

// Snapshot returns the state of the conversation.
func (c *Conversation) Snapshot(ctx context.Context) (Snapshot, error) {
	a, err := c.ask(ctx, snapshotOp{})
	return a.snapshot, err
}

// Look is Snapshot for a client that only lists what is open: it does not keep the conversation open for longer.
func (c *Conversation) Look(ctx context.Context) (Snapshot, error) {
	a, err := c.ask(ctx, snapshotOp{look: true})
	return a.snapshot, err
}

// Stop ends the turn that runs, and background commands, because of something outside that the turn ends with.
// It does not wait for the end. A turn that only waits for an approval keeps waiting.
func (c *Conversation) Stop(ctx context.Context, because *p.Error) error {
	_, err := c.ask(ctx, stopOp{because})
	return err
}

// Close stops the turn that runs, if any, waits for its end, and releases the
// conversation. A turn that only waits for an approval keeps waiting, and is there
// when the conversation is opened again.
func (c *Conversation) Close(ctx context.Context) error {
	_, err := c.ask(ctx, closeOp{})
	if err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Kill ends the owner at once, as a crash would: nothing more is recorded.
func (c *Conversation) Kill() {
	select {
	case c.quit <- struct{}{}:
	case <-c.done:
	}
	<-c.done
}

// Done is closed when the conversation is closed, by Close or because its
// journal failed.
func (c *Conversation) Done() <-chan struct{} { return c.done }

// Reader returns a reader of what is recorded.
func (c *Conversation) Reader() journal.Reader { return c.journal }

func (c *Conversation) ask(ctx context.Context, op any) (answer, error) {
	r := request{op: op, answer: make(chan answer, 1), from: ClientOf(ctx)} // room for the answer: the owner never waits
	if r.from.Brings != nil && c.forClient != nil && Runs(op) {
		cfg, err := c.forClient(r.from.Brings)
		if err != nil {
			return answer{}, err
		}
		r.brings = &cfg
	}
	select {
	case c.ops <- r:
	case <-c.done:
		return answer{}, ErrClosed
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	select {
	case a := <-r.answer:
		return a, a.err
	case <-c.done:
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	select {
	case a := <-r.answer: // it was answered on the way out
		return a, a.err
	default:
	}
	if broken := (*panics.Error)(nil); errors.As(c.err, &broken) {
		return answer{}, broken // again it would do the same
	}
	return answer{}, ErrClosed
}

// A Snapshot is the state of a conversation.
type Snapshot = p.Snapshot
