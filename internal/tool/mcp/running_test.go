package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAServerAsksThePerson(t *testing.T) {
	def := self(t, "plain")
	def.ToolTimeout = 5 * time.Minute
	r := open(t, map[string]config.MCPServer{"s": def})
	r.start(t)
	for want, resolved := range map[string]protocol.ElicitationResolved{
		"accept me 7":                 {Action: protocol.ElicitationAccept, Content: json.RawMessage(`{"name":"me"}`)},
		"accept me 3":                 {Action: protocol.ElicitationAccept, Content: json.RawMessage(`{"name":"me","age":3}`)},
		"decline <nil> <nil>":         {Action: protocol.ElicitationDecline},
		"cancel <nil> <nil>":          {Action: protocol.ElicitationCancel},
		"does not match requested sc": {Action: protocol.ElicitationAccept, Content: json.RawMessage(`{"name":1}`)},
	} {
		r.answer = func(_ context.Context, q protocol.ElicitationRequested) (protocol.ElicitationResolved, error) {
			if q.Server != "s" || q.Message != "Who are you?" || !strings.Contains(string(q.Schema), `"required":["name"]`) {
				t.Errorf("%+v", q)
			}
			return resolved, nil
		}
		if got := r.call(t.Context(), t, "s__ask", "{}").Output.Output; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r.answer = nil
	never := func(c *tool.Call) { c.Settings.Approval = protocol.ApprovalNever }
	out := r.call(t.Context(), t, "s__ask", "{}", never).Output
	if out.Output != "decline <nil> <nil>" || out.Refused != "declined, since there is no interactive client: Who are you?" || out.RefusedFor != protocol.RefusedQuestion {
		t.Errorf("with nobody to ask: %+v", out)
	}
	if !strings.Contains(r.written, "declined, since there is no interactive client: Who are you?\n") {
		t.Errorf("shown: %q", r.written)
	}
}

// TestAStopEndsAQuestion stops a call whose server waits for the person.
func TestAStopEndsAQuestion(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan struct{})
	r.answer = func(ctx context.Context, _ protocol.ElicitationRequested) (protocol.ElicitationResolved, error) {
		defer close(ended)
		cancel(errors.New("stopped"))
		<-ctx.Done()
		return protocol.ElicitationResolved{}, context.Cause(ctx)
	}
	if res := r.call(ctx, t, "s__ask", "{}"); !res.Output.Aborted {
		t.Errorf("%+v", res.Output)
	}
	<-ended
	if res := r.call(t.Context(), t, "s__echo", `{"text":"still here"}`); res.Output.Output != "still here" {
		t.Errorf("%+v", res.Output)
	}
}

// TestThePersonHasTime answers later than a call may take.
func TestThePersonHasTime(t *testing.T) {
	def := self(t, "plain")
	def.ToolTimeout = 5 * time.Minute
	r := open(t, map[string]config.MCPServer{"s": def})
	r.start(t)
	ss, err := r.list[0].session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.answer = func(context.Context, protocol.ElicitationRequested) (protocol.ElicitationResolved, error) {
		if call, err := ss.onlyCall(); err != nil || call.timer.Stop() {
			t.Errorf("the time limit of the call runs, or there is no call: %v", err)
		}
		return protocol.ElicitationResolved{Action: protocol.ElicitationDecline}, nil
	}
	if got := r.call(t.Context(), t, "s__ask", "{}").Output.Output; got != "decline <nil> <nil>" {
		t.Error(got)
	}
}

func TestSamplingIsRefused(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	if got := r.call(t.Context(), t, "s__sample", "{}").Output.Output; !strings.Contains(got, errNoSampling.Error()) {
		t.Error(got)
	}
}

func TestProgressIsShown(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	r.answer = func(context.Context, protocol.ElicitationRequested) (protocol.ElicitationResolved, error) {
		until(t, "the progress", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return strings.Contains(r.written, "3/3")
		})
		return protocol.ElicitationResolved{Action: protocol.ElicitationAccept}, nil
	}
	if got := r.call(t.Context(), t, "s__steps", "{}").Output.Output; got != "read" {
		t.Error(got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.HasPrefix(r.written, "progress:1/3 reading files\n") || !strings.HasSuffix(r.written, "progress:3/3 reading files\n") {
		t.Errorf("%q", r.written)
	}
}

func TestProgressLines(t *testing.T) {
	got := []string{}
	for _, p := range []sdk.ProgressNotificationParams{
		{Progress: 1}, {Progress: 0.5, Total: 2}, {Progress: 3, Message: "three"}, {Progress: 1, Total: 2, Message: " a\n\tb\xff"},
	} {
		got = append(got, progressLine(&p))
	}
	if diff := cmp.Diff([]string{"1", "0.5/2", "three", "1/2 a b\uFFFD"}, got); diff != "" {
		t.Error(diff)
	}
}
