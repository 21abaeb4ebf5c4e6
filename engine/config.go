package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Config is what a program brings to an engine. Store and a model must be set; the zero value of everything
// else works. Functions may be called from any goroutine, and must not block unless they have a context.
type Config struct {
	// Store is where conversations are kept: that of package store/file, store/memory or store/nats.
	Store Store

	// Model answers the requests of all turns. Turns.Model chooses one for each turn instead.
	Model Model

	// Tools are what the model can call. Their names must differ. Turns.Tools chooses them for each turn instead.
	Tools []Tool

	// Instructions are sent to the model with every request. The Instructions of a conversation's settings
	// replace them. Turns.Instructions chooses them for each turn instead.
	Instructions string

	// Version names the program in the conversations that it creates.
	Version string

	// Turns is what depends on the settings of a turn.
	Turns TurnConfig

	// ForClient returns what the turns of a client are run with that brings something of its own (Client.Brings).
	// It may block. Nil runs the turns of all clients with Turns.
	ForClient func(brings any) (TurnConfig, error)

	// Allow reports why something must not run with some settings. It is asked before each op that runs
	// something or changes settings. Nil allows everything.
	Allow func(p.Settings) error

	// Ready is called when a conversation is open here and is resumed (op is nil), or is about to run an op. It may
	// block until ctx ends. An error refuses the op. May be nil.
	Ready func(ctx context.Context, s Snapshot, op p.Op) (Readiness, error)

	// Changed is called when a conversation was opened or closed. It must not use the engine. May be nil.
	Changed func()

	// TurnEnded is called for each turn that ended, and TurnWaits for each that begins to wait for a user or
	// a limit, whichever client started it. May be nil.
	TurnEnded, TurnWaits func(p.TurnSummary)

	// Panicked receives the value and the stack of a panic of a model, a tool or the engine itself. Those of
	// models and tools are errors of their turn or call. One of the engine ends its conversation as a
	// crash would, and the next op recovers it; if Panicked is nil, it ends the process.
	Panicked func(value any, stack []byte)

	// Recovery cleans up after a crash. The zero value does so for the tools of this module.
	Recovery Recovery

	// StopTimeout is how long an interrupted turn waits for its model and its tools before it ends without
	// them. Zero is 1.5 seconds.
	StopTimeout time.Duration

	// Backoff is the wait before a failed model request is made again for the first time; it grows from there.
	// Zero is 200 milliseconds.
	Backoff time.Duration

	// MaxWait is how long a model service may ask to wait before that counts as a limit, at which the turn is
	// held. Zero is one minute.
	MaxWait time.Duration

	// DefaultWindow is how many tokens a model is taken to accept if Turns.Window does not know. Zero waits for
	// the service to refuse a request.
	DefaultWindow int64

	// An idle conversation is closed after IdleAfter, or after IdleFollowed while a client follows it, so that
	// other processes can open it; the next op opens it again. Zero is one second, and one minute; negative is
	// never.
	IdleAfter, IdleFollowed time.Duration

	// KeepWaiting keeps a conversation open whose turn waits for an approval or a limit: it does not count as idle.
	KeepWaiting bool
}

// A TurnConfig is what turns are run with where that depends on their settings. A field that is not set leaves the
// choice to the Config, or to the default that it names. Turns of one conversation should get the same tools, in the
// same order: then the service's prompt cache holds.
type TurnConfig struct {
	// Model returns the model of a turn. An error fails the turn.
	Model func(p.Settings) (Model, error)

	// Tools returns the tools of a turn, in the order in which the model is offered them.
	Tools func(p.Settings) []Tool

	// AwaitTools returns a function that waits until the tools of a turn are known, nil if they are. That is
	// called before the first request of the turn and returns warnings for users, or why the turn cannot be run.
	// Tools is then called again.
	AwaitTools func(p.Settings) func(context.Context) (warnings []string, err error)

	// Instructions returns what the model is sent first.
	Instructions func(p.Settings) string

	// Environment describes the machine to the model, except git. The default says nothing.
	Environment func(p.Settings) p.Environment

	// Window returns how many tokens the model accepts, 0 if that is not known. The default is
	// Settings.ContextWindow.
	Window func(p.Settings) int64

	// Effort returns the reasoning effort to ask for when the settings name none. The default asks for none.
	Effort func(p.Settings) string

	// Retries returns how often a failed model request is made again: if no response came back, and if a
	// response broke off. The default is five and five.
	Retries func(p.Settings) (request, stream int)

	// KeepTokens is how many tokens of the user's own messages a compaction keeps verbatim. Zero is 20,000; in a
	// small window it is less.
	KeepTokens int64

	// MaxParallel is how many calls of a turn run at the same time, if their tools allow that. Zero is eight.
	MaxParallel int

	// Ended is called for each turn that ended, also after a crash, except for commands of the user's own. Waiting
	// is called for each that begins to wait for a user or a limit, with the event that says so: ApprovalRequested,
	// ElicitationRequested or Held.
	Ended   func(p.TurnSummary)
	Waiting func(p.TurnSummary, p.Body)
}

// A Recovery is how an engine cleans up what a crash left behind.
type Recovery struct {
	// Reclaim ends what is left of a process that CommandStarted recorded, and returns how many processes
	// that were. Nil is what package tool/shell needs.
	Reclaim func(ctx context.Context, process json.RawMessage) (int, error)

	// Settle completes a patch that was interrupted, or takes it back, from what PatchStarted recorded of it;
	// note is for users. After an error nothing is known. Nil is what package tool/patch needs.
	Settle func(record json.RawMessage, committed bool) (applied bool, note string, err error)
}

// A Readiness is what has to change so that a conversation can run on this machine.
type Readiness struct {
	Settings *p.Overrides // recorded first; nil if they are right
	Op       p.Op         // submitted in place of the one that was given; nil if that is right
	Notes    []string     // what was done, for users
}

// check reports the first field that is wrong.
func (c Config) check() error {
	switch {
	case isNil(c.Store):
		return &FieldError{"Config.Store", "it is not set; store/file keeps conversations in files, store/memory in memory"}
	case isNil(c.Model) && c.Turns.Model == nil:
		return &FieldError{"Config.Model", "it is not set; provider/demo is one for trying things out"}
	case c.StopTimeout < 0:
		return &FieldError{"Config.StopTimeout", fmt.Sprintf("%v is negative", c.StopTimeout)}
	}
	if storeOf(c.Store) == nil {
		return &FieldError{"Config.Store", fmt.Sprintf("a %T is not one of the stores below package store", c.Store)}
	}
	if s, ok := c.Store.(interface{ Invalid() error }); ok && s.Invalid() != nil {
		return &FieldError{"Config.Store", s.Invalid().Error()}
	}
	return nil
}

// checkTools reports the first tool that is wrong.
func checkTools(tools []Tool) error {
	indexes := map[string]int{}
	for i, t := range tools {
		field := fmt.Sprintf("Config.Tools[%d]", i)
		if isNil(t) {
			return &FieldError{field, "it is nil"}
		}
		spec := t.Spec()
		other, taken := indexes[spec.Name]
		switch {
		case !toolName().MatchString(spec.Name):
			return &FieldError{field, fmt.Sprintf("its name %q is not 1 to 64 letters, digits, - and _", spec.Name)}
		case taken:
			return &FieldError{field, fmt.Sprintf("its name %q is that of Config.Tools[%d]", spec.Name, other)}
		case len(spec.Parameters) > 0 && !isObject(spec.Parameters):
			return &FieldError{field, fmt.Sprintf("the Parameters of %q are not a JSON object", spec.Name)}
		}
		if f, ok := t.(interface{ missing() bool }); ok && f.missing() {
			return &FieldError{field, fmt.Sprintf("%q has no function", spec.Name)}
		}
		if f, ok := t.(interface{ Invalid() error }); ok && f.Invalid() != nil {
			return &FieldError{field, fmt.Sprintf("no schema can be derived for %q: %v", spec.Name, f.Invalid())}
		}
		indexes[spec.Name] = i
	}
	return nil
}

func isObject(data json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(data, &object) == nil && object != nil
}
