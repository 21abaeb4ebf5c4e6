// Command tool gives a model a tool of the program's own, one that asks before it does something that cannot
// be undone.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/store/memory"
)

// stock is what the tool works on.
var stock = map[string]int{"apples": 3, "pears": 1}

var sell = engine.NewTool(engine.ToolSpec{
	Name:        "sell",
	Description: "Sells some of a fruit and returns how many are left.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {"fruit": {"type": "string"}, "count": {"type": "integer"}},
		"required": ["fruit", "count"]
	}`),
}, func(_ context.Context, c engine.Call) (engine.Output, error) {
	var in struct {
		Fruit string
		Count int
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
		return engine.Output{}, err
	}
	if stock[in.Fruit] < in.Count {
		return engine.Output{}, fmt.Errorf("there are only %d %s", stock[in.Fruit], in.Fruit)
	}
	if stock[in.Fruit] == in.Count && c.Decision == "" {
		return engine.Output{}, &engine.ApprovalError{Command: []string{"sell", in.Fruit}, Reason: "these are the last ones"}
	}
	stock[in.Fruit] -= in.Count
	return engine.Output{Text: fmt.Sprintf("%d %s left", stock[in.Fruit], in.Fruit)}, nil
})

// clerk stands in for a model: it sells what the message names, then repeats what the tool said.
func clerk(_ context.Context, r engine.Request, reply *engine.Reply) error {
	if last := r.Items[len(r.Items)-1]; last.Kind == protocol.PromptOutput {
		reply.Text(last.Text)
		return nil
	}
	count, fruit, _ := strings.Cut(r.LastMessage(), " ")
	reply.Call(fmt.Sprintf("call_%d", len(r.Items)), "sell", fmt.Sprintf(`{"fruit":%q,"count":%s}`, fruit, count))
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	e, err := engine.Open(ctx, engine.Config{
		Store: memory.New(),
		Model: engine.ModelFunc(clerk),
		Tools: []engine.Tool{sell},
	})
	if err != nil {
		return err
	}
	defer e.Shutdown(ctx)
	id, err := e.Create(ctx, protocol.Settings{})
	if err != nil {
		return err
	}
	for _, order := range []string{"2 apples", "5 pears", "1 pears"} {
		end, err := engine.RunTurn(ctx, e, id, protocol.UserTurn{Content: protocol.Text(order)}, func(ev protocol.Event) {
			ask, ok := ev.Body.(*protocol.ApprovalRequested)
			if !ok {
				return
			}
			fmt.Printf("  approved, although %s\n", ask.Reason)
			if _, err := e.Submit(ctx, id, protocol.Approve{Call: ask.Call, Decision: protocol.Approved}); err != nil {
				log.Print(err)
			}
		})
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", order, end.Message)
	}
	return nil
}
