package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// sdkSession drives the binary with the official client.
func (s *mcpSite) sdkSession(o *mcp.ClientOptions) (context.Context, *mcp.ClientSession) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	cmd := s.command(context.Background(), "mcp-server")
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := session.Close(); err != nil {
			s.t.Errorf("the server did not end well: %v", err)
		}
	})
	return ctx, session
}

func sdkText(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	text := ""
	for _, c := range res.Content {
		tc, ok := c.(*mcp.TextContent)
		if !ok {
			t.Fatalf("content %T", c)
		}
		text += tc.Text
	}
	return text
}

func TestMCPWithTheOfficialClient(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "untrusted", modeltest.Respond(shellCall("call_1", "touch", "made")), modeltest.Respond(modeltest.Say("made it")),
		modeltest.Respond(modeltest.Say("half an ans"), modeltest.Stall()), modeltest.Respond(modeltest.Say("here again")))
	asked := make(chan string, 1)
	progress := make(chan string, 100)
	ctx, session := s.sdkSession(&mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- r.Params.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Message
		},
	})
	if err := session.Ping(ctx, nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if len(names) != 6 || names[0] != "codex" {
		t.Errorf("tools %q", names)
	}

	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{"prompt": "make it"}})
	if err != nil || res.IsError || sdkText(t, res) != "made it" {
		t.Fatalf("codex: %+v, %v", res, err)
	}
	contains(t, "the question", <-asked, "touch made")
	if _, err := os.Stat(filepath.Join(s.work, "made")); err != nil {
		t.Error(err)
	}
	id := res.StructuredContent.(map[string]any)["conversationId"].(string)

	// A call that is given up: the model's connection is closed.
	call, giveUp := context.WithCancel(ctx)
	params := &mcp.CallToolParams{Name: "codex-reply", Arguments: map[string]any{"conversationId": id, "prompt": "more"}}
	params.SetProgressToken("token")
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(call, params)
		ended <- err
	}()
	request := s.srv.Wait(3)
	if got := <-progress; got != "task_started" {
		t.Errorf("progress %q", got)
	}
	giveUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that was given up: %v", err)
	}
	modeltest.Wait(t, "the model's connection is closed", request.Gone())

	params = &mcp.CallToolParams{Name: "codex-reply", Arguments: map[string]any{"threadId": id, "prompt": "and now?"}}
	if res, err = session.CallTool(ctx, params); err != nil || res.IsError || sdkText(t, res) != "here again" {
		t.Errorf("codex-reply: %+v, %v", res, err)
	}
}
