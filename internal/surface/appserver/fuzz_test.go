package appserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
	"github.com/fermata-agent/fermata/provider/demo"
	"github.com/fermata-agent/fermata/store/memory"
)

// FuzzDispatcher sends whatever comes: the server answers in JSON and ends when the stream does.
func FuzzDispatcher(f *testing.F) {
	const hello = `{"id":0,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	for _, seed := range []string{
		"", "{}", "[]", "null", "\x00", `{"id":1}`, `{"id":1,"method":"thread/start"}`, `{"id":1,"method":"thread/start","params":{"sandbox":"x"}}`,
		hello + `{"id":1,"method":"thread/start","params":{"config":{"a":[1]},"approvalPolicy":{"granular":1}}}`,
		hello + `{"id":1,"method":"thread/list","params":{"limit":-5,"cursor":"x","cwd":7}}` + "\n" + `{"id":2,"method":"thread/queue/add","params":{"threadId":"","input":[],"clientUserMessageId":null}}`,
		hello + `{"id":1,"method":"turn/start","params":{"threadId":"01a1e3a1-2176-725a-9c46-eb164d150ff5","input":[{"type":"text"},{"type":"localImage","path":"/dev/zero"}]}}`,
		hello + `{"id":"a/1.1.1/2","result":{"decision":{"x":1}}}` + "\n" + `{"id":"01a1e3a1-2176-725a-9c46-eb164d150ff5/1.1.1/e1","result":{"action":"accept","content":3}}`,
		hello + `{"id":1,"method":"turn/interrupt","params":{"threadId":"01a1e3a1-2176-725a-9c46-eb164d150ff5","turnId":"01a1e3a1-2176-725a-9c46-ffffffffffff"}}`,
		hello + `{"id":1,"method":"command/exec","params":{"command":["x"],"sandboxPolicy":{"type":"workspaceWrite","networkAccess":"yes"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) { serveInput(t, func(p.ConversationID) []byte { return input }) })
}

// serveInput lets a server that has one thread read some input: it answers in JSON and ends when the input does.
func serveInput(t *testing.T, input func(p.ConversationID) []byte) {
	e, err := engine.Open(t.Context(), engine.Config{Store: memory.New(), Model: demo.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Shutdown(context.Background()) }()
	id, err := e.Create(t.Context(), p.Settings{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	s := New(t.Context(), Options{Engine: e, Version: "1", Home: t.TempDir(), Cwd: "/w", Settings: puppetSettings, Change: puppetChange, Local: fakeLocal{}})
	defer s.Close()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(t.Context(), Only, bytes.NewReader(input(id)), outW)
		outW.Close()
	}()
	for lines := bufio.NewReader(outR); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		if !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

// FuzzMethods calls any two methods with any params. In the params THREAD is a thread that there is.
func FuzzMethods(f *testing.F) {
	var names []string
	for _, m := range (&conn{}).methods() {
		names = append(names, m.Name)
	}
	for i := range names {
		f.Add(uint16(i), `{"threadId":"THREAD"}`, uint16(i), `{}`)
	}
	turn := uint16(slices.Index(names, "turn/start"))
	for method, params := range map[string]string{
		"thread/resume": `{"threadId":"THREAD","cwd":"x","config":{"a.b":1}}`, "thread/fork": `{"threadId":"THREAD","lastTurnId":"THREAD","ephemeral":true}`,
		"turn/steer":     `{"threadId":"THREAD","expectedTurnId":"","input":[{"type":"text","text":"x"}]}`,
		"turn/interrupt": `{"threadId":"THREAD","turnId":""}`, "thread/revert": `{"threadId":"THREAD","beforeTurnId":"THREAD"}`,
		"thread/queue/add": `{"threadId":"THREAD","input":[{"type":"text","text":"x"}],"clientUserMessageId":"1"}`, "thread/queue/reorder": `{"threadId":"THREAD","queuedSubmissionIds":["1"]}`,
		"review/start": `{"threadId":"THREAD","target":{"type":"commit","sha":"1"}}`, "thread/settings/update": `{"threadId":"THREAD","sandboxPolicy":{"type":"readOnly"}}`,
		"thread/items/list": `{"threadId":"THREAD","cursor":"1","limit":2}`, "config/batchWrite": `{"edits":[{"keyPath":"model","value":"x","mergeStrategy":"upsert"}]}`,
	} {
		f.Add(turn, `{"threadId":"THREAD","input":[{"type":"text","text":"hi"}]}`, uint16(slices.Index(names, method)), params)
	}
	f.Fuzz(func(t *testing.T, first uint16, params string, second uint16, more string) {
		serveInput(t, func(id p.ConversationID) []byte {
			lines := []string{`{"id":0,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"}}}`}
			for i, call := range []struct {
				method uint16
				params string
			}{{first, params}, {second, more}} {
				given := strings.ReplaceAll(strings.ReplaceAll(call.params, "THREAD", string(id)), "\n", " ")
				lines = append(lines, fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, i+1, names[int(call.method)%len(names)], given))
			}
			return []byte(strings.Join(lines, "\n") + "\n")
		})
	})
}

// Any id is parsed back to what it was made of, and nothing else is an id.
func FuzzIDs(f *testing.F) {
	f.Add("01a1e3a1-2176-725a-9c46-eb164d150ff5", 3, "x")
	f.Fuzz(func(t *testing.T, name string, turn int, other string) {
		id, err := p.ParseConversationID(name)
		if err != nil || turn < 1 || turn > 1<<30 {
			t.Skip()
		}
		checkIDs(t, id, p.TurnID(turn), other)
	})
}
