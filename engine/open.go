package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Config is what a program brings to an engine of its own. Store and Model must
// be set; the zero value of everything else works.
type Config struct {
	// Store is where conversations are kept: a FileStore or a MemoryStore.
	Store Store

	// Model answers the requests of all turns.
	Model Model

	// Tools are what the model can call. Their names must differ.
	Tools []Tool

	// Instructions are sent to the model with every request. The Instructions of
	// a conversation's settings replace them.
	Instructions string

	// Version names the program in the conversations that it creates.
	Version string

	// StopTimeout is how long an interrupted turn waits for its model and its
	// tools before it ends without them. Zero is 1.5 seconds.
	StopTimeout time.Duration

	// A conversation in which nothing goes on is closed after IdleAfter, or after
	// IdleFollowed while somebody follows it, so that other processes can open it;
	// the next op opens it again. Zero is one second, and one minute; negative is
	// never.
	IdleAfter, IdleFollowed time.Duration

	// Logger gets what is of use to developers, such as the stack of a tool that
	// panicked. Nil is nowhere.
	Logger *slog.Logger
}

// Open makes an engine that runs conversations in this process. Nothing is read or
// written until it is used. ctx gives values to what runs; its end stops nothing: call
// Shutdown when the engine is not needed any longer.
//
// An error is a *FieldError that says what is wrong with the Config.
func Open(ctx context.Context, c Config) (*Local, error) {
	tools, err := c.tools()
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	client := modelClient{c.Model}
	return New(ctx, Options{
		Store: c.Store.journals,
		Config: conversation.Config{
			Model:        func(p.Settings) (model.Client, error) { return client, nil },
			Tools:        func(p.Settings) []tool.Tool { return tools },
			Instructions: func(p.Settings) string { return c.Instructions },
			Version:      c.Version,
			StopBound:    c.StopTimeout,
			Panicked:     c.panicked(),
		},
		IdleAfter:    c.IdleAfter,
		IdleFollowed: c.IdleFollowed,
	}), nil
}

func (c Config) check() error {
	switch {
	case c.Store.problem != "":
		return &FieldError{"Config.Store", c.Store.problem}
	case c.Store.journals == nil:
		return &FieldError{"Config.Store", "it is not set; use FileStore or MemoryStore"}
	case isNil(c.Model):
		return &FieldError{"Config.Model", "it is not set; DemoModel is one for trying things out"}
	case c.StopTimeout < 0:
		return &FieldError{"Config.StopTimeout", fmt.Sprintf("%v is negative", c.StopTimeout)}
	}
	return nil
}

// tools returns the tools in the form that conversations run.
func (c Config) tools() ([]tool.Tool, error) {
	var tools []tool.Tool
	indexes := map[string]int{}
	for i, t := range c.Tools {
		field := fmt.Sprintf("Config.Tools[%d]", i)
		if isNil(t) {
			return nil, &FieldError{field, "it is nil"}
		}
		spec := t.Spec()
		other, taken := indexes[spec.Name]
		switch {
		case !toolName().MatchString(spec.Name):
			return nil, &FieldError{field, fmt.Sprintf("its name %q is not 1 to 64 letters, digits, - and _", spec.Name)}
		case taken:
			return nil, &FieldError{field, fmt.Sprintf("its name %q is that of Config.Tools[%d]", spec.Name, other)}
		case len(spec.Parameters) > 0 && !isObject(spec.Parameters):
			return nil, &FieldError{field, fmt.Sprintf("the Parameters of %q are not a JSON object", spec.Name)}
		}
		if f, ok := t.(toolFunc); ok && f.run == nil {
			return nil, &FieldError{field, fmt.Sprintf("%q has no function", spec.Name)}
		}
		indexes[spec.Name] = i
		tools = append(tools, toolAdapter{t, spec})
	}
	return tools, nil
}

func isObject(data json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(data, &object) == nil && object != nil
}

func (c Config) panicked() func(any, []byte) {
	if c.Logger == nil {
		return nil
	}
	return func(v any, stack []byte) {
		c.Logger.Error("a model or a tool panicked", "panic", v, "stack", string(stack))
	}
}

// A Store is where conversations are kept. Engines of one process may share one.
type Store struct {
	journals journal.Store
	problem  string
}

// FileStore keeps each conversation in a file of its own below a directory, which
// is created when it is needed. Other processes may use the same directory at the same time: a
// conversation is open in one of them, the others get a *LockedError.
func FileStore(dir string) Store {
	if dir == "" {
		return Store{problem: "the directory of its FileStore is empty"}
	}
	return Store{journals: file.New(dir, file.Options{})}
}

// MemoryStore keeps conversations for as long as the process lives.
func MemoryStore() Store { return Store{journals: journal.NewMemoryStore(journal.MemoryOptions{})} }
