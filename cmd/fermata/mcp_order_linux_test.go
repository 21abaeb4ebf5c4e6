package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// rounds is how often the tests of order interrupt a turn.
var rounds = longtest.Default(50, 15)

// The answers to an interrupt and to a call come behind the end of the turn, whoever of the client follows it.
func TestTypeScriptOrder(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	s.srv.Otherwise(modeltest.Respond(modeltest.Say("half an ans"), modeltest.Stall()))
	var got struct {
		Late []any
		Ends []int
	}
	s.typeScript(&got, "order", fmt.Sprint(rounds))
	if len(got.Late) > 0 || len(got.Ends) != 3 || got.Ends[0] != rounds || got.Ends[1] != rounds || got.Ends[2] != rounds {
		t.Errorf("answers before ends: %v; ends told to call, stream and listener: %v", got.Late, got.Ends)
	}
}

type interruptParams struct {
	mcp.ListRootsParams        // for what makes it parameters
	ConversationID      string `json:"conversationId"`
}

type interruptAnswer struct {
	mcp.ListRootsResult        // for what makes it a result
	AbortReason         string `json:"abortReason"`
}

// A wireLog keeps the lines that a client reads and writes, in order.
type wireLog struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *wireLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(b)
}

// all is every message that was read.
func (l *wireLog) all(t *testing.T) (list []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(l.lines.String(), "\n") {
		_, text, ok := strings.Cut(line, "read: ")
		if !ok {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		list = append(list, m)
	}
	return list
}

// The same for calls of the official Go client, of which one is cancelled by its context.
func TestGoClientOrder(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never")
	s.srv.Otherwise(modeltest.Respond(modeltest.Say("half an ans"), modeltest.Stall()))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	log := &wireLog{}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddSendingCustomMethod[*interruptParams, *interruptAnswer](client, "interruptConversation")
	transport := &mcp.CommandTransport{Command: s.command(context.Background(), "mcp-server"), TerminateDuration: patience}
	session, err := client.Connect(ctx, &mcp.LoggingTransport{Transport: transport, Writer: log}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	id := ""
	for round := 1; round <= rounds; round++ {
		name, arguments := "codex-reply", map[string]any{"threadId": id, "prompt": "go"}
		if round == 1 {
			name, arguments = "codex", map[string]any{"prompt": "go"}
		}
		answered := make(chan *mcp.CallToolResult, 1)
		go func() {
			res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
			if err != nil {
				t.Error(err)
			}
			answered <- res
		}()
		eventually(t, "the turn has started", func() bool {
			all := log.all(t)
			id = conversationIn(all)
			return countOf(all, "task_started") == round
		})
		res, err := mcp.CallCustomMethod[*interruptParams, *interruptAnswer](ctx, session, "interruptConversation", &interruptParams{ConversationID: id})
		if err != nil || res.AbortReason != "interrupted" {
			t.Fatalf("round %d: %+v, %v", round, res, err)
		}
		if got := <-answered; got == nil || !got.IsError {
			t.Fatalf("round %d: %+v", round, got)
		}
	}
	ends, answers := 0, 0
	for _, m := range log.all(t) {
		switch {
		case m["method"] == "codex/event" && msgOf(m["params"].(map[string]any))["type"] == "turn_aborted":
			ends++
		case m["method"] == nil && (resultHas(m, "abortReason") || resultHas(m, "isError")):
			if answers++; (answers+1)/2 > ends {
				t.Fatalf("answer %d came after %d ends", answers, ends)
			}
		}
	}
	if ends != rounds || answers != 2*rounds {
		t.Errorf("%d ends and %d answers in %d rounds", ends, answers, rounds)
	}
}

func conversationIn(lines []map[string]any) string {
	for _, m := range lines {
		if m["method"] == "codex/event" {
			if id, ok := msgOf(m["params"].(map[string]any))["session_id"].(string); ok {
				return id
			}
		}
	}
	return ""
}

func countOf(lines []map[string]any, kind string) (n int) {
	for _, m := range lines {
		if m["method"] == "codex/event" && msgOf(m["params"].(map[string]any))["type"] == kind {
			n++
		}
	}
	return n
}

func resultHas(m map[string]any, name string) bool {
	result, ok := m["result"].(map[string]any)
	return ok && result[name] != nil
}
