package fleet

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/demo"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A bench is a store to be measured, on servers that are processes.
type bench struct {
	name string
	open func(b *testing.B) (journal.Store, *servers)
}

func benches() []bench {
	all := []bench{{"files", func(b *testing.B) (journal.Store, *servers) { return file.New(b.TempDir(), file.Options{}), nil }}}
	for _, n := range []int{1, 3} {
		for _, memory := range []bool{true, false} {
			name := fmt.Sprintf("%d,%s", n, map[bool]string{true: "memory", false: "file"}[memory])
			all = append(all, bench{name, func(b *testing.B) (journal.Store, *servers) { return onBench(b, n, memory, "") }})
		}
	}
	return append(all, bench{"1,file,always", func(b *testing.B) (journal.Store, *servers) { return onBench(b, 1, false, "always") }})
}

func onBench(b *testing.B, n int, memory bool, sync string) (journal.Store, *servers) {
	var c *servers
	switch {
	case n > 1:
		c = threeServers(b)
	case sync != "":
		c = startSyncing(b, sync)
	default:
		c = startServers(b, 1)
	}
	st := nats.New(b.Context(), nats.Options{URL: c.url(), Name: fmt.Sprint("bench", streams.Add(1)), Replicas: n, Memory: memory, Lease: time.Minute})
	b.Cleanup(func() { st.Close() })
	return st, c
}

// startSyncing starts a server that syncs as often as said.
func startSyncing(t testing.TB, sync string) *servers {
	c := newServers(t, t.TempDir(), 1)
	text, err := os.ReadFile(c.all[0].config)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "jetstream { ", "jetstream { sync_interval: "+sync+", ", 1))
	if err := os.WriteFile(c.all[0].config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.all[0].kill)
	c.start(t, c.all[0])
	c.ready(t)
	return c
}

// BenchmarkAppend is the time from Append to durable, one record after the other.
func BenchmarkAppend(b *testing.B) {
	for _, bench := range benches() {
		b.Run(bench.name, func(b *testing.B) {
			st, _ := bench.open(b)
			j, err := st.Create(b.Context(), fmt.Sprint("c", time.Now().UnixNano()), time.Now())
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n := j.Append(entry("a"))
				for d, err := j.Durable(); d < n; d, err = j.Durable() {
					if err != nil {
						b.Fatal(err)
					}
					<-j.Notify()
				}
			}
			j.Close()
		})
	}
}

// instant is a tool that takes no time.
type instant struct{}

func (instant) Spec() model.ToolSpec { return model.ToolSpec{Name: "instant"} }
func (instant) ReadOnly() bool       { return false }

func (instant) Run(ctx context.Context, call tool.Call) tool.Result {
	if err := call.Host.Record(ctx, &p.CommandStarted{Call: call.ID, Command: []string{"instant"}}); err != nil {
		return tool.Result{Output: p.ToolOutput{Aborted: true}}
	}
	return tool.Result{Output: p.ToolOutput{Output: "done", Command: &p.CommandResult{Output: "done"}}}
}

// BenchmarkTurn is the time of a whole turn with a model that takes none: one that answers, and one that runs
// a tool. On NATS it reports what a turn costs there, and what the servers need at its end.
func BenchmarkTurn(b *testing.B) {
	for _, bench := range benches() {
		for name, text := range map[string]string{"hello": "wait 0", "tool": "call: instant {}"} {
			b.Run(bench.name+"/"+name, func(b *testing.B) {
				st, c := bench.open(b)
				e := enginetest.Open(b, st, engine.Config{Model: native.Model(demo.New()), Tools: []engine.Tool{native.Tool(instant{})}})
				n := 0
				var id p.ConversationID
				for b.Loop() {
					if n%10 == 0 { // a conversation has ten turns
						var err error
						if id, err = e.Create(b.Context(), p.Settings{Provider: "demo", Model: "demo"}); err != nil {
							b.Fatal(err)
						}
					}
					n++
					end, err := engine.RunTurn(b.Context(), e, id, p.UserTurn{Content: p.Text(text)}, nil)
					if err != nil || end.End.Reason != p.Completed {
						b.Fatalf("%v, %v", end.End, err)
					}
				}
				if err := e.Shutdown(b.Context()); err != nil {
					b.Fatal(err)
				}
				c.report(b, n, "turn")
			})
		}
	}
}

// BenchmarkIdle says what conversations that nobody has open cost: make 10,000 with
// -benchtime 10000x. List is measured once, at the end.
func BenchmarkIdle(b *testing.B) {
	for _, bench := range benches()[1:] {
		b.Run(bench.name, func(b *testing.B) {
			st, c := bench.open(b)
			n := 0
			for b.Loop() {
				n++
				j, err := st.Create(b.Context(), fmt.Sprint("c", n), time.Now())
				if err != nil {
					b.Fatal(err)
				}
				for range 10 {
					j.Append(entry("event"))
				}
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			}
			began := time.Now()
			infos, err := st.List(b.Context())
			if err != nil || len(infos) != n {
				b.Fatalf("%d conversations, %v, want %d", len(infos), err, n)
			}
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/list")
			c.report(b, n, "conversation")
		})
	}
}

// report reports the messages and bytes that the benchmark's streams have for each of n, and the memory of
// the largest server.
func (c *servers) report(b *testing.B, n int, what string) {
	if c == nil {
		return
	}
	js := dial(b, c.url())
	name := fmt.Sprint("bench", streams.Load())
	var messages, bytes uint64
	for _, stream := range []string{name, name + "-checkpoints", "KV_" + name + "-index"} {
		s, err := js.Stream(b.Context(), stream)
		if err != nil {
			b.Fatal(err)
		}
		messages, bytes = messages+s.CachedInfo().State.Msgs, bytes+s.CachedInfo().State.Bytes
	}
	b.ReportMetric(float64(messages)/float64(n), "messages/"+what)
	b.ReportMetric(float64(bytes)/float64(n), "bytes/"+what)
	most := 0
	for _, s := range c.all {
		most = max(most, s.resident())
	}
	b.ReportMetric(float64(most)/1024, "MiB-server")
}

// resident returns how many KiB of memory a server has.
func (s *natsServer) resident() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	n := 0
	fmt.Sscan(rest, &n)
	return n
}
