package appserver

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

var runs = flag.Int("runs", longtest.Default(50, 10), "how many random sessions TestRandomClients plays")

// A talker is a model that talks, calls a tool and sometimes breaks, at random.
type talker struct{ r *rand.Rand }

func (m talker) Stream(ctx context.Context, _ model.Prompt, sink model.Sink) (model.End, error) {
	said := ""
	for range m.r.IntN(4) {
		select {
		case <-time.After(time.Duration(m.r.IntN(20)) * time.Millisecond):
		case <-ctx.Done():
			return model.End{}, context.Cause(ctx)
		}
		sink.Delta(0, p.DeltaMessage, "wörd ")
		said += "wörd "
	}
	index := 0
	switch n := m.r.IntN(8); {
	case n == 0:
		return model.End{}, enginetest.Refused()
	case n == 1:
		return model.End{}, enginetest.Broken()
	case said != "":
		sink.Done(0, &p.AssistantMessage{Text: said})
		index++
	}
	if m.r.IntN(3) == 0 {
		sink.Done(index, &p.ToolCall{WireID: "w", Kind: p.CallFunction, Name: "job", Arguments: "{}"})
	}
	return model.End{Usage: &p.Usage{Input: 1, Output: 1, Total: 2}}, nil
}

// A job is a tool that prints and sometimes asks first, at random.
type job struct{ r *rand.Rand }

func (job) Spec() model.ToolSpec { return model.ToolSpec{Name: "job", Kind: p.CallFunction} }
func (job) ReadOnly() bool       { return false }

func (j job) Run(ctx context.Context, call tool.Call) tool.Result {
	if call.Grant == "" && j.r.IntN(2) == 0 {
		return tool.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"job"}}}
	}
	if err := call.Host.Record(ctx, &p.CommandStarted{Call: call.ID, Command: []string{"job"}, Cwd: "/w"}); err != nil {
		return tool.Result{Output: p.ToolOutput{Aborted: true}}
	}
	call.Host.Write(p.DeltaStdout, "out")
	select {
	case <-time.After(time.Duration(j.r.IntN(30)) * time.Millisecond):
		return tool.Result{Output: p.ToolOutput{Output: "out", Command: &p.CommandResult{Output: "out"}}}
	case <-ctx.Done():
		return tool.Result{Output: p.ToolOutput{Output: "out", Aborted: true, Command: &p.CommandResult{ExitCode: -1, Output: "out"}}}
	}
}

// A walker is a client that acts at random and holds what it gets against what a client may rely on.
type walker struct {
	*client
	reader
	r       *rand.Rand
	waits   map[string]string // by the id of a request: the turn whose end its answer reports
	starts  map[string]bool   // requests whose answer comes before anything of their turn
	turn    string            // the last that it has heard of
	begun   map[string]bool   // turns whose start it has got
	attach  bool              // it has resumed and not been answered
	pending []string          // approvals
}

// act does something.
func (w *walker) act() {
	w.n++
	id := fmt.Sprintf("r%d", w.n)
	send := func(method, params string) {
		w.send(`{"id":%q,"method":%q,"params":%s}`, id, method, strings.ReplaceAll(params, `"T"`, `"`+string(w.id)+`"`))
	}
	text := `"input":[{"type":"text","text":"x"}]`
	switch n := w.r.IntN(12); {
	case n < 4:
		send("turn/start", `{"threadId":"T",`+text+`}`)
		w.starts[id] = true
	case n < 7 && w.turn != "":
		send("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, w.turn))
		w.waits[id] = w.turn
	case n == 7 && w.turn != "":
		send("turn/steer", fmt.Sprintf(`{"threadId":"T","expectedTurnId":%q,%s}`, w.turn, text))
	case n == 8:
		send("thread/read", `{"threadId":"T","includeTurns":true}`)
	case n == 9:
		w.attach = true
		send("thread/resume", `{"threadId":"T"}`)
	case n == 10:
		send("turn/start", `{"threadId":"T","whenBusy":"replace",`+text+`}`)
	case len(w.pending) > 0:
		decision := []string{"accept", "decline", "cancel", "acceptForSession"}[w.r.IntN(4)]
		w.send(`{"id":%q,"result":{"decision":%q}}`, w.pending[w.r.IntN(len(w.pending))], decision)
	}
}

// hear takes everything that has come.
func (w *walker) hear() {
	for len(w.lines) > 0 {
		m := w.next()
		id, _ := m["id"].(string)
		switch {
		case m["method"] == nil:
			w.answered(id, m)
		case m["id"] != nil:
			w.pending = append(w.pending, id)
		default:
			if m["method"] == "turn/started" {
				w.turn = at(m, "params", "turn", "id").(string)
				w.begun[w.turn] = true
			}
			w.take(m)
		}
	}
}

func (w *walker) answered(id string, m map[string]any) {
	if turn := w.waits[id]; turn != "" && m["error"] == nil && w.begun[turn] && !w.over[turn] {
		w.bad = "an interrupt was answered before the end of its turn"
	}
	if turn, _ := at(m, "result", "turn", "id").(string); w.starts[id] && at(m, "result", "state") == "started" && w.begun[turn] {
		w.bad = "turn/start was answered after the turn had started"
	}
	if at(m, "result", "seq") != nil { // of thread/resume: what is open is sent again
		w.attach = false
		w.open = map[string]string{}
		for _, t := range at(m, "result", "thread", "turns").([]any) {
			list := at(t, "items").([]any)
			for _, it := range list {
				if at(it, "status") == "inProgress" {
					w.open[at(it, "id").(string)] = ""
				}
			}
			if at(t, "status") != "inProgress" {
				w.over[at(t, "id").(string)] = true
			}
		}
	}
}

// Random clients act on one thread at random instants. Whatever they do, each gets whole turns: everything that starts
// ends, once, before its turn does; answers come behind what they report; and nothing is left running.
func TestRandomClients(t *testing.T) {
	many := *runs
	if testing.Short() {
		many = min(many, 15)
	}
	for seed := range uint64(many) {
		ok := t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomRun(t, seed) })
		})
		if !ok {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomRun(t *testing.T, seed uint64) {
	r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	x := newSiteWith(t, enginetest.New(t, enginetest.Options{Config: func(c *engine.Config) {
		c.Turns.Model = func(p.Settings) (engine.Model, error) { return native.Model(talker{r(1)}), nil }
		c.Turns.Tools = func(p.Settings) []engine.Tool { return []engine.Tool{native.Tool(job{r(2)})} }
		c.Turns.Retries = func(p.Settings) (int, int) { return 1, 1 }
	}}))
	first := x.connect()
	first.start()
	var walkers []*walker
	for n := range uint64(3) {
		w := &walker{
			client: first, r: r(10 + n), waits: map[string]string{}, starts: map[string]bool{}, begun: map[string]bool{},
			reader: reader{open: map[string]string{}, over: map[string]bool{}},
		}
		if n > 0 {
			w.client, _ = x.join(first)
		}
		walkers = append(walkers, w)
	}
	pace := r(3)
	for range 60 {
		w := walkers[pace.IntN(len(walkers))]
		w.act()
		time.Sleep(time.Duration(pace.IntN(15)) * time.Millisecond)
		for _, w := range walkers {
			w.hear()
		}
	}
	for ended := false; !ended; { // a message that waits starts the next turn
		snap, err := x.e.Resume(t.Context(), first.id)
		if err != nil {
			t.Fatal(err)
		}
		if ended = !snap.Active; !ended {
			first.ask("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, items.TurnName(first.id, snap.Turn)))
			time.Sleep(time.Minute)
		}
	}
	synctest.Wait()
	for n, w := range walkers {
		w.hear()
		if w.bad != "" {
			t.Errorf("client %d: %s", n, w.bad)
		}
		if len(w.open) > 0 {
			t.Errorf("client %d: %v are open at the end", n, w.open)
		}
	}
}
