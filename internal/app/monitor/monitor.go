// Package monitor is what a server shows operators of itself: metrics and health over HTTP, and a log. The forms are those of package observe.
package monitor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/unreachable"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/observe"
	"github.com/fermata-agent/fermata/protocol"
)

// A Monitor watches the turns of a server. It is the service that serves what it has seen: see app.Service.
type Monitor struct {
	Address string       // of /metrics and /healthz, IP:PORT; empty if they are not served
	Token   string       // for /metrics; empty if none is needed
	Log     *slog.Logger // never nil
	Ready   func(at net.Addr)

	metrics *observe.Registry
	turns   observe.Counter
	seconds observe.Histogram
	waits   observe.Counter
	work    observe.Counter
}

// buckets are seconds of turns.
var buckets = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600}

// New returns a monitor without an address.
func New(version string, log *slog.Logger) *Monitor {
	r := &observe.Registry{}
	m := &Monitor{Log: log, Ready: func(net.Addr) {}, metrics: r}
	r.Gauge("fermata_build_info", "The version of the program.", []string{"version"}, func() []observe.Sample {
		return []observe.Sample{{Labels: []string{version}, Value: 1}}
	})
	began := time.Now()
	r.GaugeOf("process_start_time_seconds", "When the process was started, in seconds since 1970.", func() float64 { return float64(began.UnixMilli()) / 1000 })
	r.GaugeOf("process_resident_memory_bytes", "Memory of the process.", residentBytes)
	r.GaugeOf("go_goroutines", "Goroutines of the process.", func() float64 { return float64(runtime.NumGoroutine()) })
	m.turns = r.Counter("fermata_turns_total", "Turns that have ended, by how they did.", "reason")
	m.seconds = r.Histogram("fermata_turn_seconds", "How long turns took, waiting included.", buckets)
	m.waits = r.Counter("fermata_turn_waits_total", "How often turns began to wait, for an approval or a limit.")
	m.work = r.Counter("fermata_work_total", "Turns of the fleet's queue, by what became of them here: begun, ended, refused, failed or handed_over.", "kind")
	return m
}

// Watch is for app.Options.
func (m *Monitor) Watch() app.TurnWatch { return app.TurnWatch{Ended: m.ended, Waits: m.waiting} }

func (m *Monitor) ended(s protocol.TurnSummary) {
	m.turns.Add(1, string(s.Reason))
	m.seconds.Observe(s.Took.Seconds())
	attrs := []any{"conversation", s.Conversation, "turn", s.Turn, "reason", s.Reason, "seconds", s.Took.Seconds()}
	if s.Error != nil {
		attrs = append(attrs, "error", s.Error.Message)
	}
	m.Log.Info("turn ended", attrs...)
}

func (m *Monitor) waiting(s protocol.TurnSummary) {
	m.waits.Add(1)
	m.Log.Info("turn waits", "conversation", s.Conversation, "turn", s.Turn)
}

// Work notes what became of a turn of the fleet's queue.
func (m *Monitor) Work(r fleet.Report) {
	m.work.Add(1, string(r.Kind))
	attrs := []any{"kind", r.Kind, "conversation", r.Work.Conversation, "turn", r.Turn, "user", r.Work.Client}
	if r.Kind == fleet.Ended {
		attrs = append(attrs, "reason", r.Reason, "seconds", r.Took.Seconds())
	}
	if r.Err != nil {
		m.Log.Warn("work", append(attrs, "error", r.Err.Error())...)
		return
	}
	m.Log.Info("work", attrs...)
}

// Node adds the metrics of a node.
func (m *Monitor) Node(member app.Member) {
	count := func(waiting bool) func() float64 {
		return func() float64 {
			a := member.Now()
			running := nats.Node{Activity: a}.Running()
			if waiting {
				return float64(len(a.Work) - running)
			}
			return float64(running)
		}
	}
	m.metrics.GaugeOf("fermata_node_turns_running", "Turns of the queue that the node runs.", count(false))
	m.metrics.GaugeOf("fermata_node_turns_waiting", "Turns of the queue that wait on the node, for an approval or a limit.", count(true))
	m.metrics.GaugeOf("fermata_node_turns_limit", "How many turns of the queue the node runs at once.", func() float64 { return float64(member.Turns) })
	m.metrics.GaugeOf("fermata_node_draining", "1 if the node takes nothing more.", func() float64 {
		if member.Now().Draining {
			return 1
		}
		return 0
	})
}

// Serve serves /metrics and /healthz until ctx ends.
func (m *Monitor) Serve(ctx context.Context, a *app.App) error {
	m.Log.Info("server started", "pid", os.Getpid(), "home", a.Config.Home, "node", a.Member.Name)
	defer m.Log.Info("server ends", "pid", os.Getpid())
	m.metrics.GaugeOf("fermata_conversations_open", "Conversations that this process has open.", func() float64 { return float64(a.Engine.Local.OpenCount()) })
	m.metrics.GaugeOf("fermata_healthy", "1 if /healthz says ok.", func() float64 {
		if a.Healthy(ctx) != nil {
			return 0
		}
		return 1
	})
	if m.Address == "" {
		<-ctx.Done()
		return nil
	}
	l, err := net.Listen("tcp", m.Address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	if l, err = unreachable.Listener(a.Config.Home, l); err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	m.Ready(l.Addr())
	s := observe.Server{Metrics: m.metrics, Token: m.Token, Healthy: func() error { return a.Healthy(ctx) }}
	return s.Serve(ctx, l)
}

// CheckAddress says what is wrong with an address of metrics. Beyond this machine they need a token.
func CheckAddress(address string, hasToken bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not IP:PORT", address)
	}
	ip := net.ParseIP(cmp.Or(host, "0.0.0.0"))
	switch {
	case ip == nil:
		return fmt.Errorf("%q is not IP:PORT", address)
	case !ip.IsLoopback() && !hasToken:
		return fmt.Errorf("%s can be reached from other machines: add --metrics-token-file FILE", address)
	}
	return nil
}

// residentBytes is the memory of this process, 0 if that is not known.
func residentBytes() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64) // 0 if it is none
	return pages * float64(os.Getpagesize())
}
