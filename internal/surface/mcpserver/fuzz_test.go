package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	p "github.com/fermata-agent/fermata/protocol"
)

// A parrot is a model that says one thing at once.
type parrot struct{}

func (parrot) Stream(_ context.Context, _ model.Prompt, sink model.Sink) (model.End, error) {
	sink.Done(0, &p.AssistantMessage{Text: "hello"})
	return model.End{}, nil
}

// A stillLocal is a machine on which nothing happens.
type stillLocal struct{}

func (stillLocal) RunOnce(context.Context, oneoff.Command) (oneoff.Result, error) {
	return oneoff.Result{}, nil
}

func (stillLocal) DiffToRemote(context.Context, string) (app.RemoteDiff, error) {
	return app.RemoteDiff{}, nil
}

func (stillLocal) SavedConfig() (app.SavedConfig, error) { return app.SavedConfig{}, nil }
func (stillLocal) Key() (string, bool)                   { return "", false }

// Whatever a client says: each line that it gets is a message, and a last request is answered.
func FuzzServer(f *testing.F) {
	for _, line := range []string{
		`{"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}}}}`,
		`{"id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"x","config":{"a":1}},"_meta":{"progressToken":1}}}`,
		`{"id":1,"method":"tools/call","params":{"name":"codex-reply","arguments":{"prompt":"x","threadId":"C","whenBusy":"queue"}}}`,
		`{"id":1,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":"C","cursor":3}}}` + "\n" + `{"method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"id":1,"method":"tools/call","params":{"name":"conversationSendMessage","arguments":{"conversation_id":"C","content":[{"type":"text","text":"x"}],"model":"y"}}}`,
		`{"id":1,"method":"tools/call","params":{"name":"conversationCreate","arguments":{"cwd":"/","prompt":"x"}}}`,
		`{"id":1,"method":"tools/call","params":{"name":"conversationsList","arguments":{"limit":-1,"cursor":"x"}}}`,
		`{"id":1,"method":"addConversationListener","params":{"conversationId":"C"}}` + "\n" + `{"id":2,"method":"sendUserMessage","params":{"conversationId":"C","items":[{"type":"text","data":{"text":"x"}}]}}`,
		`{"id":1,"method":"sendUserTurn","params":{"conversationId":"C","items":[],"cwd":"","approvalPolicy":"never","sandboxPolicy":{"mode":"x"},"model":""}}`,
		`{"id":1,"method":"interruptConversation","params":{"conversationId":"C"}}`,
		`{"id":1,"method":"resumeConversation","params":{"conversationId":"C","overrides":{"cwd":"/x"}}}`,
		`{"id":1,"method":"archiveConversation","params":{"conversationId":"C"}}`,
		`{"id":1,"method":"execOneOffCommand","params":{"command":["x"],"timeoutMs":9223372036854775807}}`,
		`[{"id":1,"method":"tools/list"},{"id":2,"method":"getUserSavedConfig"},{"id":3,"method":"getAuthStatus"}]`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, in string) {
		e := enginetest.New(t, enginetest.Options{Config: func(cfg *engine.Config) {
			cfg.Model = native.Model(parrot{})
		}})
		in = strings.ReplaceAll(in, `"C"`, `"`+string(e.Begin())+`"`)
		var out bytes.Buffer
		s := New(t.Context(), Options{Engine: e, Settings: puppetSettings, Change: puppetChange, Local: stillLocal{}})
		if err := s.Serve(t.Context(), strings.NewReader(in+"\n"+`{"id":"the last","method":"ping"}`), &out); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("not JSON: %s", line)
			}
		}
		if !bytes.Contains(out.Bytes(), []byte(`"id":"the last"`)) {
			t.Fatalf("the last request was not answered:\n%s", out.Bytes())
		}
	})
}
