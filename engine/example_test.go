package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/file"
	"github.com/fermata-agent/fermata/store/memory"
)

// message is a message of the user.
func message(text string) protocol.UserTurn {
	return protocol.UserTurn{Content: protocol.Text(text)}
}

// parrot repeats the last message; if that is a call, such as "add {}", it calls the tool and repeats the output.
var parrot = engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
	last := r.Items[len(r.Items)-1]
	if name, arguments, ok := strings.Cut(r.LastMessage(), " {"); ok && last.Kind != protocol.PromptOutput {
		reply.Call(fmt.Sprint("call_", len(r.Items)), name, "{"+arguments)
		return nil
	}
	if last.Kind == protocol.PromptOutput {
		reply.Text(last.Text)
		return nil
	}
	reply.Text(r.LastMessage())
	return nil
})

// open opens an engine in memory with a conversation. Examples panic at errors that cannot happen in them.
func open(c engine.Config) (*engine.Local, protocol.ConversationID) {
	if c.Store == nil {
		c.Store = memory.New()
	}
	e, err := engine.Open(context.Background(), c)
	if err != nil {
		panic(err)
	}
	id, err := e.Create(context.Background(), protocol.Settings{Model: "parrot"})
	if err != nil {
		panic(err)
	}
	return e, id
}

// A model is one method: here it shouts what it is sent.
func ExampleOpen() {
	ctx := context.Background()
	e, err := engine.Open(ctx, engine.Config{
		Store: memory.New(),
		Model: engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
			reply.Text(strings.ToUpper(r.LastMessage()))
			return nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Shutdown(ctx)
	id, err := e.Create(ctx, protocol.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	end, err := engine.RunTurn(ctx, e, id, protocol.UserTurn{Content: protocol.Text("hello")}, nil)
	fmt.Println(end.End.Reason, end.Message, err)
	// Output: completed HELLO <nil>
}

// An error of the configuration names the field.
func ExampleOpen_invalid() {
	_, err := engine.Open(context.Background(), engine.Config{Model: demo.New()})
	fmt.Println(err)
	// Output: Config.Store: it is not set; store/file keeps conversations in files, store/memory in memory
}

// The schema of a typed tool is derived from its argument, and its result is sent as JSON.
func ExampleToolFor() {
	type numbers struct {
		A float64 `json:"a" jsonschema:"the first number"`
		B float64 `json:"b" jsonschema:"the second number"`
	}
	type sum struct {
		Sum float64 `json:"sum"`
	}
	add := engine.ToolFor("add", "Adds two numbers.", func(_ context.Context, in numbers) (sum, error) {
		return sum{in.A + in.B}, nil
	})
	e, id := open(engine.Config{Model: parrot, Tools: []engine.Tool{add}})
	defer e.Shutdown(context.Background())
	end, _ := engine.RunTurn(context.Background(), e, id, message(`add {"a":1,"b":2}`), nil)
	fmt.Println(end.Message)
	end, _ = engine.RunTurn(context.Background(), e, id, message(`add {"a":"one"}`), nil)
	fmt.Println(strings.HasPrefix(end.Message, "failed: the arguments of add are not valid"))
	fmt.Println(string(add.Spec().Parameters))
	// Output:
	// {"sum":3}
	// true
	// {"type":"object","properties":{"a":{"type":"number","description":"the first number"},"b":{"type":"number","description":"the second number"}},"required":["a","b"],"additionalProperties":false}
}

// A tool is a description and a function.
func ExampleNewTool() {
	add := engine.NewTool(engine.ToolSpec{
		Name:        "add",
		Description: "Adds two numbers.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		ReadOnly:    true,
	}, func(_ context.Context, c engine.Call) (engine.Output, error) {
		var in struct{ A, B float64 }
		if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
			return engine.Output{}, err
		}
		return engine.Output{Text: fmt.Sprint(in.A + in.B)}, nil
	})
	out, err := add.Run(context.Background(), engine.Call{Arguments: `{"a":1,"b":2}`})
	fmt.Println(out.Text, err)
	// Output: 3 <nil>
}

// A tool returns an image for models that accept images.
func ExampleOutput() {
	chart := engine.ToolFor("chart", "Draws the sales.", func(context.Context, struct{}) (engine.Output, error) {
		return engine.Output{Text: "the sales of May", Images: []engine.Image{{Type: "image/png", Data: []byte("…")}}}, nil
	})
	e, id := open(engine.Config{Model: parrot, Tools: []engine.Tool{chart}})
	defer e.Shutdown(context.Background())
	_, _ = engine.RunTurn(context.Background(), e, id, message("chart {}"), func(ev protocol.Event) {
		if out, ok := ev.Body.(*protocol.ToolOutput); ok {
			fmt.Println(out.Output, len(out.Content))
		}
	})
	// Output: the sales of May 1
}

// A tool asks for an approval; another goroutine, or another program, could answer it later.
func ExampleApprovalError() {
	remove := engine.ToolFor("remove", "Removes everything.", func(ctx context.Context, _ struct{}) (string, error) {
		if engine.CallOf(ctx).Decision == "" {
			return "", &engine.ApprovalError{Command: []string{"remove"}, Reason: "it cannot be undone"}
		}
		return "removed", nil
	})
	ctx := context.Background()
	e, id := open(engine.Config{Model: parrot, Tools: []engine.Tool{remove}})
	defer e.Shutdown(ctx)
	end, _ := engine.RunTurn(ctx, e, id, message("remove {}"), func(ev protocol.Event) {
		if ask, ok := ev.Body.(*protocol.ApprovalRequested); ok {
			fmt.Println("approved, although", ask.Reason)
			_, _ = e.Submit(ctx, id, protocol.Approve{Call: ask.Call, Decision: protocol.Approved})
		}
	})
	fmt.Println(end.Message)
	// Output:
	// approved, although it cannot be undone
	// removed
}

// When its context ends, RunTurn interrupts the turn. What the model wrote is kept.
func ExampleRunTurn() {
	e, id := open(engine.Config{Model: engine.ModelFunc(func(ctx context.Context, _ engine.Request, reply *engine.Reply) error {
		reply.Text("to be")
		<-ctx.Done() // it thinks for as long as it may
		return ctx.Err()
	})})
	defer e.Shutdown(context.Background())
	ctx, interrupt := context.WithCancel(context.Background())
	end, err := engine.RunTurn(ctx, e, id, message("hello"), func(ev protocol.Event) {
		if _, ok := ev.Body.(*protocol.Delta); ok {
			interrupt()
		}
	})
	fmt.Println(end.End.Reason, end.Message, err)
	// Output: interrupted to be <nil>
}

// A conversation in files is there for the next process, also after a crash.
func ExampleLocal_Resume() {
	dir, _ := os.MkdirTemp("", "conversations-")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	e, id := open(engine.Config{Store: file.New(dir), Model: parrot})
	_, _ = engine.RunTurn(ctx, e, id, message("remember me"), nil)
	e.Kill() // as a crash would

	next, err := engine.Open(ctx, engine.Config{Store: file.New(dir), Model: parrot})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer next.Shutdown(ctx)
	state, err := next.Resume(ctx, id)
	fmt.Println(state.Turn, state.Ended, err)
	// Output: 1 completed <nil>
}

// A client that attaches gets the past, is informed that it has all of it, and then gets what happens.
func ExampleLocal_Attach() {
	e, id := open(engine.Config{Model: parrot})
	defer e.Shutdown(context.Background())
	_, _ = engine.RunTurn(context.Background(), e, id, message("hello"), nil)
	ctx, leave := context.WithCancel(context.Background())
	for ev, err := range e.Attach(ctx, id, 0, leave) {
		if err != nil {
			break // it has left
		}
		switch b := ev.Body.(type) {
		case *protocol.UserMessage:
			fmt.Println("user:", protocol.PlainText(b.Content))
		case *protocol.AssistantMessage:
			fmt.Println("model:", b.Text)
		}
	}
	// Output:
	// user: hello
	// model: hello
}

// A fork is a new conversation with the same past.
func ExampleLocal_Fork() {
	ctx := context.Background()
	e, id := open(engine.Config{Model: engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
		var known []string
		for _, item := range r.Items {
			known = append(known, item.Text, protocol.PlainText(item.Content))
		}
		reply.Text(fmt.Sprintf("I know of one: %t, of two: %t", slices.Contains(known, "one"), slices.Contains(known, "two")))
		return nil
	})})
	defer e.Shutdown(ctx)
	_, _ = engine.RunTurn(ctx, e, id, message("one"), nil)
	fork, _ := e.Fork(ctx, id, 0)
	end, _ := engine.RunTurn(ctx, e, fork, message("two"), nil)
	fmt.Println(end.Message)
	// Output: I know of one: true, of two: true
}

// The list shows conversations that changed last first.
func ExampleLocal_List() {
	ctx := context.Background()
	e, id := open(engine.Config{Model: parrot})
	defer e.Shutdown(ctx)
	_, _ = engine.RunTurn(ctx, e, id, message("hello"), nil)
	page, err := e.List(ctx, engine.ListOptions{})
	fmt.Println(len(page.Items), page.Items[0].Title, page.Items[0].Ended, err)
	// Output: 1 hello completed <nil>
}

// A program that offers several models chooses one for each turn, by its settings.
func ExampleTurnConfig() {
	e, id := open(engine.Config{Turns: engine.TurnConfig{Model: func(s protocol.Settings) (engine.Model, error) {
		if s.Model != "parrot" {
			return nil, fmt.Errorf("there is no model %q", s.Model)
		}
		return parrot, nil
	}}})
	ctx := context.Background()
	defer e.Shutdown(ctx)
	end, _ := engine.RunTurn(ctx, e, id, message("hello"), nil)
	fmt.Println(end.End.Reason, end.Message)
	other := message("hello")
	other.Overrides = &protocol.Overrides{Model: new(string)}
	*other.Overrides.Model = "owl"
	end, _ = engine.RunTurn(ctx, e, id, other, nil)
	fmt.Println(end.End.Reason, end.End.Error.Message)
	// Output:
	// completed hello
	// failed there is no model "owl"
}

// A model asks to be tried again.
func ExampleModel() {
	tired := true
	e, id := open(engine.Config{Backoff: time.Millisecond, Model: engine.ModelFunc(func(_ context.Context, _ engine.Request, reply *engine.Reply) error {
		if tired {
			tired = false
			return &protocol.Error{Kind: protocol.ErrorConnection, Message: "asleep", Retry: true}
		}
		reply.Text("awake")
		return nil
	})})
	defer e.Shutdown(context.Background())
	end, _ := engine.RunTurn(context.Background(), e, id, message("hello"), func(ev protocol.Event) {
		if retry, ok := ev.Body.(*protocol.ModelRetry); ok {
			fmt.Println("again, because it is", retry.Reason)
		}
	})
	fmt.Println(end.Message)
	// Output:
	// again, because it is asleep
	// awake
}
