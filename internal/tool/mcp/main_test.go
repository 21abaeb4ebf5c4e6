package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is also the MCP server: a real one, made with the official SDK. The
// variable says what is special about it.
const serverVariable = "FERMATA_TEST_MCP"

func TestMain(m *testing.M) {
	if proc.IsShim() {
		syscall.Exit(proc.ShimMain(sandbox.Confiner()))
	}
	if mode := os.Getenv(serverVariable); mode != "" {
		serve(mode)
		syscall.Exit(0)
	}
	os.Exit(m.Run())
}

func serve(mode string) {
	switch mode {
	case "hang":
		<-time.After(24 * time.Hour) // without cgo select {} is a deadlock, which ends the program
	case "fail":
		fmt.Fprintln(os.Stderr, "no licence")
		syscall.Exit(3)
	case "garbage":
		fmt.Println("Listening on stdio\n{\"not\": \"rpc\"}\n[oops")
	}
	note("started")
	server := newTestServer()
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
}

type none struct{}

// note appends a line to the file that the test reads.
func note(text string) {
	f, err := os.OpenFile(os.Getenv("NOTES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, text)
}

func newTestServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	readOnly := &sdk.ToolAnnotations{ReadOnlyHint: true}
	type echo struct {
		Text string `json:"text"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Repeats a text.", Annotations: readOnly}, func(_ context.Context, _ *sdk.CallToolRequest, in echo) (*sdk.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	addDocuments(s)
	sdk.AddTool(s, &sdk.Tool{Name: "delete"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		note("deleted")
		return text("deleted"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "wait", Annotations: readOnly}, func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			return nil, nil, err
		}
		note(fmt.Sprintf("waiting %d %d", os.Getpid(), child.Process.Pid))
		<-ctx.Done()
		note("cancelled")
		return text("too late"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die", Annotations: readOnly}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "out of luck")
		syscall.Exit(9)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "big", Annotations: readOnly}, func(_ context.Context, _ *sdk.CallToolRequest, in bigCall) (*sdk.CallToolResult, any, error) {
		return in.answer(), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fails", Annotations: readOnly}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("no such thing")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow", Annotations: readOnly}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		s.AddTool(&sdk.Tool{Name: "grown", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("new"), nil })
		return text("ok"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "env", Annotations: readOnly}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		wd, _ := os.Getwd()
		return text(fmt.Sprintf("own=%s passed=%s secret=%s dir=%s", os.Getenv("OWN"), os.Getenv("PASSED"), os.Getenv("SECRET"), wd)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask", Annotations: readOnly}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		note("asking")
		res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Who are you?", RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]}`)})
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(res.Action, " ", res.Content["name"], " ", res.Content["age"])), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "sample", Annotations: readOnly}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		//lint:ignore SA1019 servers that use it exist, and are to be refused
		_, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 10})
		return nil, nil, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "steps", Annotations: readOnly}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Message: "reading\nfiles", Progress: float64(i + 1), Total: 3,
			})
			if err != nil {
				return nil, nil, err
			}
		}
		_, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Seen?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		return text("read"), nil, err // after the progress: an answer may overtake it
	})
	return s
}

// A bigCall asks for a result of so many bytes.
type bigCall struct {
	Bytes int
	Kind  string `json:"Kind,omitempty"` // text if empty
}

func (in bigCall) answer() *sdk.CallToolResult {
	long := strings.Repeat("0123456789abcde\n", in.Bytes/16)
	switch in.Kind {
	case "image":
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "a picture"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte(long)}}}
	case "items":
		res := &sdk.CallToolResult{}
		for i := range in.Bytes / 32 {
			res.Content = append(res.Content, &sdk.TextContent{Text: fmt.Sprint(i)})
		}
		return res
	case "members":
		m := map[string]int{}
		for i := range in.Bytes / 8 {
			m[fmt.Sprint("m", i)] = i
		}
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: m}
	case "endless":
		fmt.Print(`{"jsonrpc":"2.0","id":1,"result":"`)
		for {
			if _, err := fmt.Print(strings.ReplaceAll(long, "\n", " ")); err != nil {
				break
			}
		}
	}
	return text(long)
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// until waits for something outside of this process.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("waited for: " + what)
		}
	}
}

// addDocuments adds resources and a prompt.
func addDocuments(s *sdk.Server) {
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		c := &sdk.ResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "the text of " + r.Params.URI}
		switch r.Params.URI {
		case "doc://long":
			c.Text = strings.Repeat("0123456789abcde\n", 1<<13) + "the end"
		case "doc://picture":
			c.MIMEType, c.Text, c.Blob = "image/png", "", []byte("png")
		case "doc://none":
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{c}}, nil
	}
	for _, uri := range []string{"doc://one", "doc://long", "doc://picture", "doc://none"} {
		s.AddResource(&sdk.Resource{URI: uri, Name: uri}, read)
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "doc://by/{name}", Name: "by"}, read)
	s.AddPrompt(&sdk.Prompt{Name: "Greet", Description: "Greets somebody.", Arguments: []*sdk.PromptArgument{{Name: "name", Required: true}, {Name: "how"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			a := r.Params.Arguments
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: "Greet " + a["name"] + " " + a["how"]}},
				{Role: "assistant", Content: &sdk.TextContent{Text: "Hello!"}},
			}}, nil
		})
}
