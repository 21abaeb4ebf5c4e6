package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/memory"
)

// A model is one method: here it shouts what it is told.
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

// An error of the configuration names the field.
func ExampleOpen_invalid() {
	_, err := engine.Open(context.Background(), engine.Config{Model: demo.New()})
	fmt.Println(err)
	// Output: Config.Store: it is not set; store/file keeps conversations in files, store/memory in memory
}
