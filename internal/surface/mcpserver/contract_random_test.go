package mcpserver

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	tools "github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

var contracts = flag.Int("contracts", longtest.Default(1000, 40), "how many random clients TestContract plays")

// TestContract plays random clients and holds every line that they get against the contract.
func TestContract(t *testing.T) {
	runs := *contracts
	if testing.Short() {
		runs = min(runs, 100)
	}
	for seed := range uint64(runs) {
		if !t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { contractRun(t, &dice{r: rand.New(rand.NewPCG(seed, 15))}) })
		}) {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A worker is a model that talks, calls a tool and sometimes breaks, at random.
type worker struct {
	d     *dice
	calls *atomic.Int64
}

func (b worker) Stream(ctx context.Context, pr model.Prompt, sink model.Sink) (model.End, error) {
	said := ""
	for range b.d.n(4) {
		select {
		case <-time.After(time.Duration(b.d.n(30)) * time.Millisecond):
		case <-ctx.Done():
			return model.End{}, context.Cause(ctx)
		}
		sink.Delta(0, p.DeltaMessage, "word ")
		said += "word "
	}
	switch b.d.n(8) {
	case 0:
		return model.End{}, enginetest.Refused()
	case 1:
		return model.End{}, enginetest.Broken()
	}
	sink.Done(0, &p.AssistantMessage{Text: said + "end"})
	if b.d.n(2) == 0 {
		sink.Done(1, &p.ToolCall{WireID: fmt.Sprintf("c%d", b.calls.Add(1)), Name: "work", Arguments: "{}"})
	}
	return model.End{}, nil
}

// A risky tool runs a command, which it sometimes asks about first.
type risky struct{ d *dice }

func (risky) Spec() model.ToolSpec { return model.ToolSpec{Name: "work", Kind: p.CallFunction} }
func (risky) ReadOnly() bool       { return false }

func (r risky) Run(ctx context.Context, call tools.Call) tools.Result {
	command := []string{"make", call.WireID}
	if call.Grant == "" && r.d.n(2) == 0 {
		return tools.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: command, Cwd: "/w"}}
	}
	if err := call.Host.Record(ctx, &p.CommandStarted{Call: call.ID, Command: command, Cwd: "/w"}); err != nil {
		return tools.Result{Output: p.ToolOutput{Aborted: true}}
	}
	out := ""
	for range r.d.n(4) {
		select {
		case <-time.After(time.Duration(r.d.n(30)) * time.Millisecond):
		case <-ctx.Done():
			return tools.Result{Output: p.ToolOutput{Output: out, Aborted: true, Command: &p.CommandResult{ExitCode: -1, Output: out}}}
		}
		call.Host.Write(p.DeltaStdout, "line\n")
		out += "line\n"
	}
	return tools.Result{Output: p.ToolOutput{Output: out, Command: &p.CommandResult{Output: out}}}
}

func contractRun(t *testing.T, d *dice) {
	calls := new(atomic.Int64)
	e := enginetest.New(t, enginetest.Options{Config: func(cfg *engine.Config) {
		cfg.Model = native.Model(worker{d, calls})
		cfg.Tools = []engine.Tool{native.Tool(risky{d})}
	}})
	ids := []string{string(e.Begin()), string(e.Begin())}
	var wires []*wire
	for i := range 2 {
		w := newWire(t, attach(t, e))
		capabilities := []string{asks, noAsks}[i]
		w.send(`{"id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities)
		w.skip("init")
		wires = append(wires, w)
		if d.n(3) > 0 || i == 1 {
			w.listen(ids)
		}
	}
	for range 12 {
		for _, w := range wires {
			w.step(d, ids[d.n(len(ids))])
		}
		if d.n(2) == 0 {
			time.Sleep(time.Duration(d.n(50)) * time.Millisecond)
		}
		for _, w := range wires {
			w.hear()
		}
	}
	for range 8 { // until nothing goes on
		time.Sleep(10 * time.Second)
		for _, w := range wires {
			w.hear()
			w.decide(d, true)
			w.hear()
		}
	}
	for _, w := range wires {
		w.settled()
		w.sameStory(e, ids)
	}
}

func (w *wire) ask(what, conversation, format string, args ...any) string {
	w.next++
	id := fmt.Sprint(w.next)
	w.asked[id] = &request{what: what, conversation: conversation}
	w.send(`{"id":%s,%s}`, id, fmt.Sprintf(format, args...))
	return id
}

func (w *wire) tool(name, conversation, arguments string) string {
	return w.ask(name, conversation, `"method":"tools/call","params":{"name":%q,"arguments":%s}`, name, arguments)
}

// listen adds a listener of each conversation.
func (w *wire) listen(ids []string) {
	for _, id := range ids {
		w.conv(id).listener = newTold("the listener")
		w.ask("listen", id, `"method":"addConversationListener","params":{"conversationId":%q}`, id)
	}
	w.hear()
}

// step does something at random.
func (w *wire) step(d *dice, id string) {
	mode := []string{"", `,"whenBusy":"steer"`, `,"whenBusy":"queue"`, `,"whenBusy":"replace"`}[d.n(4)]
	switch d.n(10) {
	case 0, 1:
		w.tool("codex-reply", id, fmt.Sprintf(`{"threadId":%q,"prompt":"x"%s}`, id, mode))
	case 2:
		w.ask("sendUserMessage", id, `"method":"sendUserMessage","params":{"conversationId":%q,"items":[{"type":"text","data":{"text":"y"}}]%s}`, id, mode)
	case 3:
		w.tool("conversationSendMessage", id, fmt.Sprintf(`{"conversation_id":%q,"content":[{"type":"text","text":"z"}]%s}`, id, mode))
	case 4:
		w.interrupt(id)
	case 5:
		w.hear() // what comes now is of the stream before
		f := w.conv(id)
		f.streams++
		f.stream = newTold(fmt.Sprintf("stream %d", f.streams))
		w.tool("conversationStream", id, fmt.Sprintf(`{"conversation_id":%q,"meta":true,"cursor":0}`, id))
		w.hear()
	case 6:
		w.cancelOne(d)
	case 7:
		if f := w.conv(id); f.listener == nil {
			w.listen([]string{id})
			f.late = true
		}
	default:
		w.decide(d, false)
	}
}

func (w *wire) interrupt(id string) {
	before := map[*toldTo]int{}
	w.hear()
	for _, v := range w.conv(id).followers() {
		if v.inTurn {
			before[v] = v.ends
		}
	}
	w.asked[w.ask("interrupt", id, `"method":"interruptConversation","params":{"conversationId":%q}`, id)].before = before
}

// cancelOne cancels a request, which may have been answered, or be the stream.
func (w *wire) cancelOne(d *dice) {
	victim := fmt.Sprint(1 + d.n(w.next+1))
	r := w.asked[victim]
	if r == nil || r.what == "interrupt" || r.what == "listen" {
		return
	}
	r.cancelled = true
	w.cancel(victim)
	w.hear()
	if f := w.conv(r.conversation); r.what == "conversationStream" && f.stream != nil && r.answered && w.lastStream(r.conversation) == victim {
		f.stream = nil
	}
}

// lastStream is the request of the stream that a conversation has.
func (w *wire) lastStream(conversation string) string {
	last := ""
	for i := 1; i <= w.next; i++ {
		if r := w.asked[fmt.Sprint(i)]; r != nil && r.what == "conversationStream" && r.conversation == conversation {
			last = fmt.Sprint(i)
		}
	}
	return last
}

// decide answers an open question, or all.
func (w *wire) decide(d *dice, all bool) {
	for id, call := range w.open {
		switch d.n(5) {
		case 0:
			w.send(`{"id":%s,"result":{"decision":"approved"}}`, id)
		case 1:
			w.send(`{"id":%s,"result":{"action":"decline"}}`, id)
		case 2:
			w.send(`{"id":%s,"result":{"decision":"abort"}}`, id)
		case 3:
			w.send(`{"id":%s,"error":{"code":-32601,"message":"no"}}`, id)
		case 4:
			w.send(`{"id":%s,"result":{"decision":"approved_for_session"}}`, id)
		}
		delete(w.calls, call)
		delete(w.open, id)
		if !all {
			return
		}
	}
}

// sameStory checks that the listener and the stream were told what a stream that begins now is told.
func (w *wire) sameStory(e *enginetest.Engine, ids []string) {
	w.t.Helper()
	for _, id := range ids {
		f := w.conv(id)
		judge := newWire(w.t, attach(w.t, e))
		judge.conv(id).stream = newTold("the judge")
		judge.tool("conversationStream", id, fmt.Sprintf(`{"conversation_id":%q,"meta":true,"cursor":0}`, id))
		judge.hear()
		want := judge.conv(id).stream.story
		for _, v := range []*toldTo{f.listener, f.stream} {
			if v == nil {
				continue
			}
			want := want
			if v == f.listener && f.late { // it is told what there was since this client came
				for len(v.story) > 0 && (strings.Contains(v.story[0], `"task_started"`) || strings.Contains(v.story[0], `_begin"`)) {
					v.story = v.story[1:] // what had begun is told first
				}
				want = want[max(0, len(want)-len(v.story)):]
			}
			if diff := cmp.Diff(want, v.story); diff != "" && len(want)+len(v.story) > 0 {
				w.t.Errorf("%s of %s (-journal +told):\n%s", v.name, id, diff)
			}
		}
	}
}
