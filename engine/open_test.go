package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/file"
	"github.com/fermata-agent/fermata/store/memory"
)

// echo is a model that repeats the last message.
var echo = engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
	reply.Text(r.LastMessage())
	return nil
})

// opened opens an engine that is shut down when the test ends.
func opened(t *testing.T, c engine.Config) *engine.Local {
	t.Helper()
	if c.Store == nil {
		c.Store = memory.New()
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	return e
}

// run runs a turn in a new conversation and returns its events in short.
func run(t *testing.T, e engine.Engine, text string) (engine.TurnEnd, []string) {
	t.Helper()
	id, err := e.Create(t.Context(), p.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	end, err := engine.RunTurn(t.Context(), e, id, p.UserTurn{Content: p.Text(text)}, func(ev p.Event) {
		lines = append(lines, enginetest.Line(ev))
	})
	if err != nil {
		t.Fatal(err)
	}
	return end, lines
}

func TestOpenNamesTheField(t *testing.T) {
	work := func(name, parameters string) engine.Tool {
		return engine.NewTool(engine.ToolSpec{Name: name, Parameters: json.RawMessage(parameters)}, func(context.Context, engine.Call) (engine.Output, error) {
			return engine.Output{}, nil
		})
	}
	var noModel engine.ModelFunc
	store := memory.New()
	for field, c := range map[string]engine.Config{
		"Config.Store":        {Model: echo},
		"Config.Store ":       {Model: echo, Store: file.New("")},
		"Config.Model":        {Store: store},
		"Config.Model ":       {Store: store, Model: noModel},
		"Config.StopTimeout":  {Store: store, Model: echo, StopTimeout: -1},
		"Config.Tools[0]":     {Store: store, Model: echo, Tools: []engine.Tool{nil}},
		"Config.Tools[0]  ":   {Store: store, Model: echo, Tools: []engine.Tool{engine.NewTool(engine.ToolSpec{Name: "a"}, nil)}},
		"Config.Tools[0] ":    {Store: store, Model: echo, Tools: []engine.Tool{work("two words", "")}},
		"Config.Tools[1]":     {Store: store, Model: echo, Tools: []engine.Tool{work("a", "{}"), work("a", "{}")}},
		"Config.Tools[0]   ":  {Store: store, Model: echo, Tools: []engine.Tool{engine.ToolFor[struct{}, string]("a", "", nil)}},
		"Config.Tools[0]    ": {Store: store, Model: echo, Tools: []engine.Tool{engine.ToolFor("a", "", func(context.Context, chan int) (string, error) { return "", nil })}},
		"Config.Tools[1] ":    {Store: store, Model: echo, Tools: []engine.Tool{work("a", "{}"), work("b", "[]")}},
	} {
		_, err := engine.Open(t.Context(), c)
		wantField(t, err, strings.TrimSpace(field))
	}
}

func TestReplyBecomesItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := opened(t, engine.Config{Model: engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
			if r.Items[len(r.Items)-1].Kind == p.PromptOutput {
				reply.Text("it is " + r.Items[len(r.Items)-1].Text)
				reply.Usage(p.Usage{Input: 3, Output: 4, Total: 7})
				return nil
			}
			reply.Reasoning("hm")
			reply.Text("let me ")
			reply.Text("")
			reply.Text("look\xff")
			reply.Call("c1", "look", `{"at":"it"}`)
			return nil
		}), Tools: []engine.Tool{engine.NewTool(engine.ToolSpec{Name: "look"}, func(_ context.Context, c engine.Call) (engine.Output, error) {
			c.Print("one ")
			return engine.Output{Text: "there: " + c.Arguments}, nil
		})}})
		end, lines := run(t, e, "look at it")
		want := []string{
			"turn_started", "user_message look at it", "model_requested 1", "reasoning hm", "assistant_message let me look\uFFFD",
			"tool_call 1.1.2 look", "model_ended", "call_started 1.1.2", "tool_output 1.1.2 there",
			"model_requested 2", `assistant_message it is there: {"at":"it"}`, "model_ended", "turn_ended completed",
		}
		var recorded []string
		for _, line := range lines {
			if !strings.HasPrefix(line, "delta ") {
				recorded = append(recorded, line)
			}
		}
		if d := cmp.Diff(want, recorded); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
		if end.Usage.Total != 7 {
			t.Errorf("usage %+v", end.Usage)
		}
	})
}

// An interrupt keeps what the model has said and what the tool has printed.
func TestInterruptOfAnEmbeddedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printed := make(chan struct{})
		e := opened(t, engine.Config{Model: engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
			reply.Text("I work")
			reply.Call("c1", "work", "{}")
			return nil
		}), Tools: []engine.Tool{engine.NewTool(engine.ToolSpec{Name: "work"}, func(ctx context.Context, c engine.Call) (engine.Output, error) {
			c.Print("half")
			close(printed)
			<-ctx.Done()
			return engine.Output{}, ctx.Err()
		})}})
		id, err := e.Create(t.Context(), p.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-printed; cancel() }()
		var output *p.ToolOutput
		end, err := engine.RunTurn(ctx, e, id, p.UserTurn{Content: p.Text("go")}, func(ev p.Event) {
			if b, ok := ev.Body.(*p.ToolOutput); ok {
				output = b
			}
		})
		if err != nil || end.End.Reason != p.Interrupted || end.Message != "I work" {
			t.Errorf("end %+v, %v", end, err)
		}
		if output == nil || !output.Aborted || !strings.Contains(output.Output, "half") {
			t.Errorf("output %+v", output)
		}
	})
}

func TestToolThatAsksAndToolsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		calls := 0
		e := opened(t, engine.Config{
			Panicked: func(value any, stack []byte) { fmt.Fprintf(&log, "%v\n%s", value, stack) },
			Model: engine.ModelFunc(func(_ context.Context, r engine.Request, reply *engine.Reply) error {
				if calls++; calls <= 3 {
					reply.Call(fmt.Sprint("c", calls), []string{"remove", "fail", "panic"}[calls-1], "{}")
				}
				return nil
			}), Tools: []engine.Tool{
				engine.NewTool(engine.ToolSpec{Name: "remove"}, func(_ context.Context, c engine.Call) (engine.Output, error) {
					if c.Decision == "" {
						return engine.Output{}, &engine.ApprovalError{Command: []string{"remove", "x"}, Reason: "it cannot be undone"}
					}
					return engine.Output{Text: "removed"}, nil
				}),
				engine.NewTool(engine.ToolSpec{Name: "fail"}, func(context.Context, engine.Call) (engine.Output, error) {
					return engine.Output{}, errors.New("no such thing")
				}),
				engine.NewTool(engine.ToolSpec{Name: "panic"}, func(context.Context, engine.Call) (engine.Output, error) { panic("boom") }),
			},
		})
		id, err := e.Create(t.Context(), p.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		var outputs []string
		end, err := engine.RunTurn(t.Context(), e, id, p.UserTurn{Content: p.Text("go")}, func(ev p.Event) {
			switch b := ev.Body.(type) {
			case *p.ApprovalRequested:
				if b.Reason != "it cannot be undone" {
					t.Errorf("asked %+v", b)
				}
				if _, err := e.Submit(t.Context(), id, p.Approve{Call: b.Call, Decision: p.Approved}); err != nil {
					t.Error(err)
				}
			case *p.ToolOutput:
				outputs = append(outputs, fmt.Sprintf("%v %s", b.Failed, b.Output))
			}
		})
		if err != nil || end.End.Reason != p.Completed {
			t.Errorf("end %+v, %v", end, err)
		}
		want := []string{"false removed", "true failed: no such thing", "true tool failed: internal error: boom"}
		if d := cmp.Diff(want, outputs); d != "" {
			t.Errorf("outputs (-want +got):\n%s", d)
		}
		if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "TestToolThatAsks") {
			t.Errorf("log %s", &log)
		}
	})
}

// A program can wrap a model, also one of ours.
func TestWrappedDemoModel(t *testing.T) {
	demo := demo.New()
	var asked []string
	e := opened(t, engine.Config{Model: engine.ModelFunc(func(ctx context.Context, r engine.Request, reply *engine.Reply) error {
		asked = append(asked, r.LastMessage())
		return demo.Stream(ctx, r, reply)
	}), Store: file.New(t.TempDir())})
	end, _ := run(t, e, "talk 2")
	if end.End.Reason != p.Completed || !strings.HasPrefix(end.Message, "[demo]") || end.Usage.Total == 0 {
		t.Errorf("end %+v", end)
	}
	if d := cmp.Diff([]string{"talk 2"}, asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
}

// What a typed tool is called with and returns.
func TestToolForChecksArguments(t *testing.T) {
	type in struct {
		Path  string `json:"path"`
		Count int    `json:"count,omitempty"`
	}
	called := 0
	tool := engine.ToolFor("look", "Looks.", func(ctx context.Context, v in) (any, error) {
		called++
		switch v.Path {
		case "text":
			return "plain", nil
		case "picture":
			return engine.Output{Text: "seen", Images: []engine.Image{{Type: "image/png", Data: []byte{1}}}}, nil
		case "call":
			return engine.CallOf(ctx).Name, nil
		}
		return v, nil
	})
	for _, c := range []struct {
		arguments string
		want      engine.Output
		problem   string
	}{
		{`{"path":"text"}`, engine.Output{Text: "plain"}, ""},
		{`{"path":"x","count":2}`, engine.Output{Text: `{"path":"x","count":2}`}, ""},
		{`{"path":"call"}`, engine.Output{Text: "look"}, ""},
		{`{"path":"picture"}`, engine.Output{Text: "seen", Images: []engine.Image{{Type: "image/png", Data: []byte{1}}}}, ""},
		{`{"count":2}`, engine.Output{}, "path"},
		{`{"path":"x","count":"two"}`, engine.Output{}, "count"},
		{`{"path":"x","more":1}`, engine.Output{}, "more"},
		{`{`, engine.Output{}, "JSON"},
		{``, engine.Output{}, "path"},
	} {
		before := called
		out, err := tool.Run(t.Context(), engine.Call{Name: "look", Arguments: c.arguments})
		if d := cmp.Diff(c.want, out); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.arguments, d)
		}
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem) || called != before) {
			t.Errorf("%s: %v, called %d times", c.arguments, err, called-before)
		}
	}
}
