package engine_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/fsck"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/anthropic"
	"github.com/fermata-agent/fermata/internal/model/chat"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/responses"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// wireNames are the wires in an order, in which a plain run shares variants out among them.
var wireNames = []string{"responses", "chat", "anthropic"}

// The wires, by name.
var wires = map[string]func(http.RoundTripper) model.Client{
	"responses": func(rt http.RoundTripper) model.Client {
		return responses.New(responses.Options{BaseURL: "http://model.test/v1", HTTP: rt})
	},
	"chat": func(rt http.RoundTripper) model.Client {
		return chat.New(chat.Options{BaseURL: "http://model.test/v1", HTTP: rt})
	},
	"anthropic": func(rt http.RoundTripper) model.Client {
		return anthropic.New(anthropic.Options{BaseURL: "http://model.test/v1", HTTP: rt})
	},
}

// printer is a tool that prints as much as it is asked for.
type printer struct{}

func (printer) Spec() model.ToolSpec {
	return model.ToolSpec{Name: "shell", Description: "prints", Kind: p.CallFunction, Parameters: json.RawMessage(`{"type":"object","properties":{"bytes":{"type":"integer"}}}`)}
}
func (printer) ReadOnly() bool { return false }
func (printer) Run(_ context.Context, call tool.Call) tool.Result {
	var a struct{ Bytes int }
	_ = json.Unmarshal([]byte(call.Arguments), &a)
	return tool.Result{Output: p.ToolOutput{Output: strings.Repeat("some output ", a.Bytes/12+1)}}
}

// A worker is a scripted model that makes a number of calls, then says that it is done, and
// writes summaries when it is asked for one.
type worker struct {
	left  int        // calls
	size  func() int // of what each prints
	calls int
}

func asksForSummary(req *modeltest.Request) bool {
	last := req.Items[len(req.Items)-1]
	return strings.Contains(last.Text, "Summarise this conversation")
}

func (w *worker) reply(req *modeltest.Request) modeltest.Reply {
	switch {
	case asksForSummary(req):
		return modeltest.Respond(modeltest.Say(fmt.Sprintf("So far %d calls were made. ", w.calls) + strings.Repeat("This and that was found. ", 10)))
	case w.left > 0:
		w.left--
		w.calls++
		return modeltest.Respond(modeltest.Call(fmt.Sprint("call_", w.calls), "shell", fmt.Sprintf(`{"bytes":%d}`, w.size())))
	}
	return modeltest.Respond(modeltest.Say("done"))
}

// A longRun is an engine on a server with limits.
type longRun struct {
	*engine.Local
	t     *testing.T
	srv   *modeltest.Server
	store journal.Store
	cfg   engine.Config
	id    p.ConversationID
	work  *worker
}

func newLongRun(t *testing.T, wire string, l modeltest.Limits, settings p.Settings, work *worker) *longRun {
	t.Helper()
	srv := modeltest.New(t)
	srv.Limit(l)
	srv.Otherwise(modeltest.From(work.reply))
	client := wires[wire](srv.Transport())
	r := &longRun{t: t, srv: srv, store: journal.NewMemoryStore(journal.MemoryOptions{}), work: work}
	r.cfg = engine.Config{
		Model: native.Model(client), Tools: []engine.Tool{native.Tool(printer{})}, Instructions: "Work.", Backoff: time.Millisecond,
		IdleAfter: -1, IdleFollowed: -1,
	}
	r.open()
	settings.Cwd, settings.Model = "/w", "m"
	id, err := r.Create(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	r.id = id
	return r
}

func (r *longRun) open() {
	r.Local = enginetest.Open(r.t, r.store, r.cfg)
}

// crash ends the engine at once and opens another on the same store.
func (r *longRun) crash() {
	r.Kill()
	r.open()
}

// say runs a turn and returns how it ended.
func (r *longRun) say(text string) engine.TurnEnd {
	r.t.Helper()
	end, err := engine.RunTurn(r.t.Context(), r.Local, r.id, p.UserTurn{Content: p.Text(text)}, func(p.Event) {})
	if err != nil {
		r.t.Fatal(err)
	}
	return end
}

// completes says something and fails the test if that is not answered.
func (r *longRun) completes(text string) {
	r.t.Helper()
	if end := r.say(text); end.End.Reason != p.Completed || end.Message != "done" {
		r.t.Fatalf("%.40q: %s, %v, %q", text, end.End.Reason, end.End.Error, end.Message)
	}
}

// events returns all events, and checks the promises.
func (r *longRun) events() []p.Event {
	r.t.Helper()
	var all []p.Event
	var judge fsck.Checker
	for e, err := range r.Read(r.t.Context(), r.id) {
		if err != nil {
			r.t.Fatal(err)
		}
		judge.Apply(e)
		all = append(all, e)
	}
	if problems := judge.End(); len(problems) > 0 {
		r.t.Fatalf("%v", problems)
	}
	return all
}

func (r *longRun) compactions() (all []*p.Compacted) {
	for _, e := range r.events() {
		if c, ok := e.Body.(*p.Compacted); ok {
			all = append(all, c)
		}
	}
	return all
}

func (r *longRun) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), time.Minute)
	defer cancel()
	_ = r.Shutdown(ctx)
}

// Many calls whose outputs are many times what fits.
func TestLongWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for long; TestRandomLongConversations has the same goroutines")
	}
	for _, wire := range wireNames {
		calls := map[int64]int{16_000: 48} // by window: the time goes with both
		switch {
		case longtest.On():
			calls = map[int64]int{32_000: 100, 50_000: 200}
		case wire == "anthropic": // where what may be answered takes a part of the window
			calls = map[int64]int{32_000: 96}
		}
		for window, calls := range calls {
			for _, tt := range []struct {
				name   string
				limits modeltest.Limits
				known  int64
				plain  string // the wire that has it in a plain run too: "" is each
			}{
				{"known", modeltest.Limits{}, window, ""},
				{"unknown", modeltest.Limits{}, 0, ""},
				{"unnamed", modeltest.Limits{Unnamed: true}, 0, "responses"},
				{"no usage", modeltest.Limits{NoUsage: true}, window, "chat"},
				{"no usage known", modeltest.Limits{NoUsage: true, Unnamed: true}, 0, "chat"},
				{"overstated", modeltest.Limits{}, 4 * window, "responses"},
				{"strict proxy", modeltest.Limits{Strict: true}, window, "responses"},
			} {
				if !longtest.On() && tt.plain != "" && tt.plain != wire {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%s", wire, window, tt.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						tt.limits.Window = window
						testLongWork(t, wire, tt.limits, tt.known, calls)
					})
				})
			}
		}
	}
}

func testLongWork(t *testing.T, wire string, limits modeltest.Limits, known int64, calls int) {
	work := &worker{left: calls, size: func() int { return 4000 }}
	r := newLongRun(t, wire, limits, p.Settings{ContextWindow: known}, work)
	defer r.close()
	r.completes("make many calls")
	compactions := r.compactions()
	if work.left != 0 || len(compactions) < calls*1000/int(limits.Window)-1 {
		t.Errorf("%d calls left, %d compactions", work.left, len(compactions))
	}
	if known == limits.Window && r.srv.Refusals() > 0 {
		t.Errorf("%d requests were refused although the window is known", r.srv.Refusals())
	}
	for _, c := range compactions {
		if c.Local {
			t.Error("a summary was made from the records: the request for it was never made short enough")
		}
	}
	r.completes("and now?")
	t.Logf("%d requests, %d compactions, %d refused", len(r.srv.Requests()), len(r.compactions()), r.srv.Refusals())
}

// A message that is many times what fits is shortened in the request, and answered.
func TestHugeMessage(t *testing.T) {
	for wire := range wires {
		for name, known := range map[string]int64{"known": 32_000, "unknown": 0} {
			t.Run(wire+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newLongRun(t, wire, modeltest.Limits{Window: 32_000}, p.Settings{ContextWindow: known}, &worker{size: func() int { return 100 }})
					defer r.close()
					r.completes("first " + strings.Repeat("x", 400_000) + " last")
					r.completes("and now?")
				})
			})
		}
	}
}

// A conversation that was left nearly full goes on.
func TestResumeNearlyFull(t *testing.T) {
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := &worker{size: func() int { return 6000 }}
				r := newLongRun(t, wire, modeltest.Limits{Window: 1 << 30}, p.Settings{}, work)
				defer r.close()
				for last := int64(0); last < 30_000; {
					work.left = 1
					r.completes("go on")
					all := r.srv.Requests()
					last = all[len(all)-1].Tokens()
					if wire == "anthropic" {
						last -= 32_000
					}
				}
				r.srv.Limit(modeltest.Limits{Window: 32_000})
				r.crash()
				r.completes("and now?")
			})
		})
	}
}

// Stopped or killed at any instant of a compaction, the history is what it was before or
// after it, nothing of the summary is a message, and the conversation goes on.
func TestStopsInACompaction(t *testing.T) {
	for i, wire := range wireNames {
		for _, how := range []string{"stop", "crash"} {
			for at := range 12 {
				if (testing.Short() || !longtest.On()) && at%len(wireNames) != i {
					continue // another wire has this instant
				}
				t.Run(fmt.Sprintf("%s/%s/%d", wire, how, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						work := &worker{left: 20, size: func() int { return 4000 }}
						r := newLongRun(t, wire, modeltest.Limits{Window: 8_000}, p.Settings{ContextWindow: 8_000}, work)
						defer r.close()
						slow := modeltest.From(func(req *modeltest.Request) modeltest.Reply {
							reply := work.reply(req)
							if asksForSummary(req) {
								reply = modeltest.Respond(modeltest.Say("So ", "far ", "half a ", "summary")).Slowly(40, time.Millisecond)
							}
							return reply
						})
						r.srv.Otherwise(slow)
						turn := make(chan engine.TurnEnd, 1)
						go func() {
							end, err := engine.RunTurn(t.Context(), r.Local, r.id, p.UserTurn{Content: p.Text("work")}, func(p.Event) {})
							if err == nil {
								turn <- end
							}
							close(turn)
						}()
						waitForSummary(r)
						time.Sleep(time.Duration(at*at) * time.Millisecond)
						if how == "stop" {
							_, _ = r.Submit(t.Context(), r.id, p.Interrupt{})
							<-turn
						} else {
							r.crash()
							<-turn
						}
						work.left = 0
						r.srv.Otherwise(modeltest.From(work.reply))
						r.completes("and now?")
						for _, e := range r.events() {
							if m, ok := e.Body.(*p.AssistantMessage); ok && strings.Contains(m.Text, "half a") {
								t.Errorf("half a summary is a message: %q", m.Text)
							}
						}
					})
				})
			}
		}
	}
}

func waitForSummary(r *longRun) {
	for n := 1; ; n++ {
		req := r.srv.Wait(n)
		if asksForSummary(req) {
			return
		}
	}
}

var longWalks = flag.Int("long", longtest.Default(40, 6), "how many random long conversations to run")

// Whatever the window, the sizes, the stops and the crashes: a short message can be
// answered in the end.
func TestRandomLongConversations(t *testing.T) {
	for seed := range uint64(*longWalks) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		wire := wireNames[rnd.IntN(3)]
		window := int64(6000 + rnd.IntN(60_000))
		limits := modeltest.Limits{Window: window, Unnamed: rnd.IntN(2) == 0, NoUsage: rnd.IntN(2) == 0, Strict: rnd.IntN(2) == 0}
		known := []int64{0, window, window * 3, window / 2}[rnd.IntN(4)]
		t.Run(fmt.Sprintf("%d/%s/%d/%d", seed, wire, window, known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := &worker{size: func() int { return []int{10, 1000, 10_000, 100_000}[rnd.IntN(4)] }}
				r := newLongRun(t, wire, limits, p.Settings{ContextWindow: known}, work)
				defer r.close()
				for range 6 {
					work.left = rnd.IntN(12)
					text := strings.Repeat("word ", []int{1, 100, 4000, 80_000}[rnd.IntN(4)])
					switch rnd.IntN(4) {
					case 0: // stopped, or killed, somewhere
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(40))*time.Millisecond)
						_, _ = engine.RunTurn(ctx, r.Local, r.id, p.UserTurn{Content: p.Text(text)}, func(p.Event) {})
						cancel()
						if rnd.IntN(2) == 0 {
							r.crash()
						}
					default:
						if end := r.say(text); end.End.Reason != p.Completed {
							t.Fatalf("%s: %v", end.End.Reason, end.End.Error)
						}
					}
				}
				work.left = 0
				r.completes("still there?")
				r.events()
			})
		})
	}
}

// After several compactions the model can look up what was said and printed before the first.
func TestRecallAfterCompactions(t *testing.T) {
	facts := longtest.Default(50, 20)
	if testing.Short() {
		facts = 20
	}
	fact := func(n int) string { return fmt.Sprintf("the secret of door%02d is %d", n, 7919*(n+1)) }
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := &worker{size: func() int { return 4000 }}
				r := newLongRun(t, wire, modeltest.Limits{Window: 16_000}, p.Settings{ContextWindow: 16_000}, work)
				defer r.close()
				for n := range facts {
					r.completes(strings.Repeat("some words ", 100) + fact(n))
				}
				for len(r.compactions()) < 3 {
					work.left = 20
					r.completes("work")
				}
				asked, recalled := -1, map[int]bool{}
				r.srv.Otherwise(modeltest.From(func(req *modeltest.Request) modeltest.Reply {
					for _, it := range req.Items {
						if it.Kind == wirecheck.Output && asked >= 0 && strings.Contains(it.Text, fact(asked)) {
							recalled[asked] = true
						}
					}
					if asksForSummary(req) {
						return work.reply(req)
					}
					if asked++; asked == facts {
						return modeltest.Respond(modeltest.Say("done"))
					}
					return modeltest.Respond(modeltest.Call(fmt.Sprint("look_", asked), "search_history", fmt.Sprintf(`{"query":"secret door%02d"}`, asked)))
				}))
				r.completes("what are the secrets?")
				if len(recalled) != facts {
					t.Errorf("%d of %d facts recalled", len(recalled), facts)
				}
			})
		})
	}
}

// The tools that look things up are offered from the first compaction on; a message that
// was too long can be read in pieces.
func TestLookupIsOfferedWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := &worker{size: func() int { return 100 }}
		r := newLongRun(t, "chat", modeltest.Limits{Window: 16_000}, p.Settings{ContextWindow: 16_000}, work)
		defer r.close()
		r.completes("hello")
		if n := len(r.srv.Wait(1).List("tools")); n != 1 {
			t.Errorf("%d tools before anything was left out", n)
		}
		r.completes(strings.Repeat("x", 100_000) + " the end is 4711 " + strings.Repeat("y", 100_000))
		if n := len(r.srv.Wait(2).List("tools")); n != 3 {
			t.Errorf("%d tools after a message was shortened", n)
		}
		step := 0
		var got string
		r.srv.Otherwise(modeltest.From(func(req *modeltest.Request) modeltest.Reply {
			step++
			got = req.Items[len(req.Items)-1].Text
			if step == 1 {
				return modeltest.Respond(modeltest.Call("c", "read_history", `{"item":"2.0.0","offset":99000}`))
			}
			return modeltest.Respond(modeltest.Say("done"))
		}))
		r.completes("what is the end?")
		if !strings.Contains(got, "the end is 4711") || !strings.HasPrefix(got, "2.0.0 message of the user, bytes 99000 to 107000 of 200017") {
			t.Errorf("read %.100q", got)
		}
	})
}
