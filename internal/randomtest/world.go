package randomtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// A world is what the conversation acts on: it plays the model and the tools,
// and remembers what they did.
type world struct {
	t  testing.TB
	mu sync.Mutex
	r  *rand.Rand

	alive    map[p.CallID]bool // calls whose work runs now
	immortal map[p.CallID]bool // of these, the ones that cannot be stopped
	alone    map[p.CallID]bool // of these, the ones that nothing may run beside
	ran      []p.CallID        // calls that had an effect
	most     int               // how many calls may run at the same time
	parallel int               // how often a call began while another one ran
	eager    bool              // the model calls many tools at once

	requests int // model requests under way, without those that cannot be stopped

	jobs     map[p.BackgroundID]*randomJob // background commands that ever ran
	endings  map[p.EndReason]int           // how they ended, in all scenarios
	resolved map[p.Resolution]int          // how returned messages were resolved
}

func (w *world) rnd(n int) int { w.mu.Lock(); defer w.mu.Unlock(); return w.r.IntN(n) }

func (w *world) pause(ctx context.Context) bool {
	select {
	case <-time.After(time.Duration(w.rnd(40)) * time.Millisecond):
		return ctx.Err() == nil
	case <-ctx.Done():
		<-time.After(time.Duration(w.rnd(30)) * time.Millisecond) // slow to die
		return false
	}
}

// Stream plays the model.
func (w *world) Stream(ctx context.Context, pr model.Prompt, sink model.Sink) (model.End, error) {
	if err := validPrompt(pr.Items); err != nil {
		w.t.Errorf("the model was sent a bad history: %v", err)
	}
	if w.rnd(20) == 0 { // one that cannot be stopped
		<-time.After(10 * time.Second)
		sink.Done(0, &p.AssistantMessage{Text: "at last"})
		return model.End{}, nil
	}
	w.request()
	defer w.requestEnds()
	if w.eager && w.rnd(4) > 0 {
		w.calls(sink, 0, 2+w.rnd(4))
		return model.End{}, nil
	}
	index := 0
	for range w.rnd(4) {
		if !w.pause(ctx) {
			sink.Delta(index, p.DeltaMessage, "LATE")
			sink.Done(index, &p.AssistantMessage{Text: "LATE"})
			return model.End{}, context.Cause(ctx)
		}
		switch w.rnd(8) {
		case 0:
			sink.Done(index, &p.Reasoning{Text: "hm"})
		case 1, 2, 3:
			text := ""
			for k := range w.rnd(6) {
				piece := fmt.Sprintf("w%d ", k)
				text += piece
				sink.Delta(index, p.DeltaMessage, piece)
				if !w.pause(ctx) {
					sink.Delta(index, p.DeltaMessage, "LATE")
					return model.End{}, context.Cause(ctx)
				}
			}
			if text != "" {
				sink.Done(index, &p.AssistantMessage{Text: text})
			}
		default:
			index = w.calls(sink, index, 1)
			continue
		}
		index++
	}
	switch w.rnd(12) {
	case 3:
		return model.End{}, &p.Error{Kind: p.ErrorUsageLimit, Message: "no more today"}
	case 0:
		return model.End{}, &p.Error{Kind: p.ErrorConnection, Message: "broke", Retry: true}
	case 1:
		return model.End{}, &p.Error{Kind: p.ErrorRequest, Message: "refused"}
	case 2:
		fault := &p.CallFault{WireID: fmt.Sprint("call_", w.rnd(3), "_0"), Fault: p.CallWithoutOutput}
		return model.End{}, &p.Error{Kind: p.ErrorHistory, Message: "no output", Call: fault}
	}
	return model.End{Usage: &p.Usage{Input: 1, Output: 1, Total: 2}}, nil
}

// calls calls so many tools, and returns the next index.
func (w *world) calls(sink model.Sink, index, n int) int {
	for range n {
		name := toolNames[w.rnd(len(toolNames))]
		sink.Done(index, &p.ToolCall{WireID: fmt.Sprint("call_", w.rnd(3), "_", index), Kind: p.CallFunction, Name: name})
		index++
	}
	return index
}

// request fails the test if another request is under way: a conversation makes
// one at a time.
func (w *world) request() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests++; w.requests > 1 {
		w.t.Errorf("%d model requests at once", w.requests)
	}
}

func (w *world) requestEnds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests--
}

// toolNames are what the model calls. There is no "nosuch".
var toolNames = []string{"work", "look", "run", "run", "run", "run", "ask", "type", "nosuch"}

// lanes say what calls may run beside. Those that are not named run alone.
var lanes = map[string]turn.Lane{"look": turn.Beside, "run": turn.Beside, "ask": turn.Asks, "type": "type"}

type randomTool struct {
	w    *world
	name string
}

func (t randomTool) Spec() model.ToolSpec     { return model.ToolSpec{Name: t.name} }
func (t randomTool) ReadOnly() bool           { return t.name == "look" }
func (t randomTool) Lane(tool.Call) turn.Lane { return lanes[t.name] }

func (t randomTool) Run(ctx context.Context, call tool.Call) tool.Result {
	w := t.w
	if call.Grant == "" && (t.name == "ask" || w.rnd(6) == 0) {
		w.pause(ctx)
		return tool.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand}}
	}
	if err := call.Host.Record(ctx, &p.CommandStarted{Call: call.ID, Command: []string{t.name}}); err != nil {
		return tool.Result{Output: p.ToolOutput{Aborted: true}}
	}
	immortal := w.rnd(10) == 0
	w.begin(call, immortal)
	defer w.finish(call.ID)
	if immortal {
		<-time.After(10 * time.Second)
		call.Host.Write(p.DeltaStdout, "at last")
		return tool.Result{Output: p.ToolOutput{Output: "at last", Command: &p.CommandResult{Output: "at last"}}}
	}
	printed := ""
	for k := range w.rnd(5) {
		piece := fmt.Sprintf("line %d\n", k)
		printed += piece
		call.Host.Write([]p.DeltaKind{p.DeltaStdout, p.DeltaStderr}[w.rnd(2)], piece)
		if w.rnd(5) == 0 {
			return w.keep(call, printed)
		}
		if !w.pause(ctx) {
			return tool.Result{Output: p.ToolOutput{Output: printed, Aborted: true, Command: &p.CommandResult{ExitCode: -1, Output: printed, Killed: 1}}}
		}
	}
	if w.rnd(2) == 0 {
		return w.keep(call, printed)
	}
	return tool.Result{Output: p.ToolOutput{Output: "ok", Command: &p.CommandResult{Output: printed}}}
}

func (w *world) begin(call tool.Call, immortal bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := call.ID
	w.alone[id] = lanes[call.Name] == turn.Alone || call.Grant != ""
	w.beside(id)
	if slices.Contains(w.ran, id) {
		w.t.Errorf("call %s ran twice", id)
	}
	w.ran = append(w.ran, id)
	w.alive[id], w.immortal[id] = true, immortal
}

// beside fails the test if a call begins beside others that it must not run beside.
func (w *world) beside(id p.CallID) {
	others := 0
	for other := range w.alive {
		if other.Turn != id.Turn || other == id {
			continue // it was given up
		}
		others++
		if w.alone[id] || w.alone[other] {
			w.t.Errorf("call %s (alone: %t) runs beside %s (alone: %t)", id, w.alone[id], other, w.alone[other])
		}
	}
	if others >= w.most {
		w.t.Errorf("call %s runs beside %d others", id, others)
	}
	if others > 0 {
		w.parallel++
	}
}

func (w *world) finish(id p.CallID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.alive, id)
}

// validPrompt is what a model API demands.
func validPrompt(items []*p.PromptItem) error {
	var open []string // calls that want an output
	for i, it := range items {
		switch it.Kind {
		case p.PromptCall:
			if i > 0 && items[i-1].Kind == p.PromptOutput && len(open) > 0 {
				return fmt.Errorf("item %d: a call between outputs", i)
			}
			open = append(open, it.WireID)
		case p.PromptOutput:
			k := slices.Index(open, it.WireID)
			if k < 0 {
				return fmt.Errorf("item %d: output for %s, open are %v", i, it.WireID, open)
			}
			open = slices.Delete(open, k, k+1)
		case p.PromptReasoning:
			if i == len(items)-1 || items[i+1].Kind == p.PromptUser || items[i+1].Kind == p.PromptOutput {
				return fmt.Errorf("item %d: reasoning with nothing after it", i)
			}
		default:
			if len(open) > 0 {
				return fmt.Errorf("item %d: %s while %v want outputs", i, it.Kind, open)
			}
		}
		if it.Kind == p.PromptAssistant && strings.Contains(it.Text, "LATE") {
			return fmt.Errorf("item %d: %q was said after the stop", i, it.Text)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no output for %v", open)
	}
	return nil
}
