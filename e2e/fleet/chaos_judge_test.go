package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// judge looks at everything that is left.
func (w *world) judge(all []*chaosClient) {
	for text, n := range w.errs {
		w.logf("%d times: %s", n, text)
	}
	w.servers.ready(w.t)
	began := w.epochs()
	st := nats.New(w.t.Context(), nats.Options{URL: w.servers.url()})
	defer st.Close()
	e := enginetest.Open(w.t, st, engine.Config{})
	turns, events := 0, 0
	for _, c := range all {
		if c.id == "" {
			continue
		}
		list := w.events(e, c.id)
		c.seen(list)
		events += len(list)
		turns += w.oneEnd(c.id, list)
		w.commandsEnded(c, list, began[string(c.id)])
	}
	w.fsck(all)
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.took)
	line := fmt.Sprintf("%d conversations, %d turns, %d events; broken: %v", len(all), turns, events, w.faults)
	if n := len(w.took); n > 0 {
		line += fmt.Sprintf("; %d take-overs: median %v, 95%% %v, worst %v", n, w.took[n/2].Round(time.Millisecond), w.took[n*95/100].Round(time.Millisecond), w.took[n-1].Round(time.Millisecond))
	}
	w.logf("%s", line)
}

func (w *world) events(e *engine.Local, id p.ConversationID) []p.Event {
	var all []p.Event
	for ev, err := range e.Read(w.t.Context(), id) {
		if err != nil {
			w.t.Errorf("read conversation %s: %v", id, err)
			break
		}
		if int(ev.Seq) != len(all)+1 {
			w.t.Errorf("conversation %s: event %d after %d", id, ev.Seq, len(all))
		}
		all = append(all, ev)
	}
	return all
}

// oneEnd checks that each turn has one, and returns how many turns there are.
func (w *world) oneEnd(id p.ConversationID, events []p.Event) int {
	open := make(map[p.TurnID]bool)
	n := 0
	for _, ev := range events {
		switch ev.Body.(type) {
		case *p.TurnStarted:
			n++
			open[ev.Turn] = true
		case *p.TurnEnded:
			if !open[ev.Turn] {
				w.t.Errorf("conversation %s: turn %d ends twice, or never began", id, ev.Turn)
			}
			delete(open, ev.Turn)
		}
	}
	if len(open) > 0 {
		w.t.Errorf("conversation %s: turns without an end: %v", id, open)
	}
	return n
}

// An epoch is from when on a node has a conversation, and with which event it begins.
type epoch struct {
	number uint64
	node   string
	at     time.Time
	last   uint64 // event before it
}

// epochs reads the stream itself: one writer at a time, each in its own epoch.
func (w *world) epochs() map[string][]epoch {
	js := dial(w.t, w.servers.url())
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	c, err := js.OrderedConsumer(ctx, "fermata", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"fermata.c.*.r"}, HeadersOnly: true})
	if err != nil {
		w.t.Fatal(err)
	}
	messages, err := c.Messages()
	if err != nil {
		w.t.Fatal(err)
	}
	defer messages.Stop()
	all := make(map[string][]epoch)
	for left := uint64(1); left > 0; {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			w.t.Fatal(err)
		}
		md, err := m.Metadata()
		if err != nil {
			w.t.Fatal(err)
		}
		left = md.NumPending
		var head struct {
			Epoch uint64 `json:"e"`
			Node  string `json:"n"`
			Last  uint64 `json:"l"`
			Begin bool   `json:"o"`
		}
		if err := json.Unmarshal([]byte(m.Headers().Get("Fermata")), &head); err != nil {
			w.t.Errorf("message %d: %v", md.Sequence.Stream, err)
		}
		id := strings.Split(m.Subject(), ".")[2]
		list := all[id]
		switch n := len(list); {
		case head.Begin && head.Epoch == uint64(n)+1:
			all[id] = append(list, epoch{head.Epoch, head.Node, md.Timestamp, head.Last})
		case n == 0 || head.Epoch != list[n-1].number || head.Node != list[n-1].node:
			w.t.Errorf("conversation %s: message %d of epoch %d of %s, in epoch %v", id, md.Sequence.Stream, head.Epoch, head.Node, list[max(n-1, 0):])
		}
	}
	return all
}

// commandsEnded checks that no command of a turn ran when the next epoch had begun.
func (w *world) commandsEnded(c *chaosClient, events []p.Event, epochs []epoch) {
	files, _ := filepath.Glob(filepath.Join(w.dir, string(c.id)+".*.beat"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		lines := strings.Fields(string(b))
		if len(lines) == 0 {
			continue
		}
		nanos, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
		if err != nil {
			continue
		}
		lastBeat := time.Unix(0, nanos)
		seq := startedBy(events, filepath.Base(name))
		for _, ep := range epochs {
			if ep.last >= seq && seq > 0 && lastBeat.After(ep.at) {
				w.t.Errorf("conversation %s: a command of event %d (%s) ran until %v, %v after node %s had begun epoch %d", c.id, seq, filepath.Base(name), lastBeat, lastBeat.Sub(ep.at), ep.node, ep.number)
				break
			}
		}
		if seq == 0 {
			w.t.Errorf("conversation %s: %s was run, and the journal does not know it", c.id, filepath.Base(name))
		}
	}
}

// startedBy returns the event that says that a command with this text is run.
func startedBy(events []p.Event, text string) uint64 {
	for _, ev := range events {
		if b, ok := ev.Body.(*p.ToolCall); ok {
			if raw, _ := json.Marshal(b); strings.Contains(string(raw), text) {
				return uint64(ev.Seq)
			}
		}
	}
	return 0
}

// fsck runs the real one. A conversation without events that no client knows of is what is left when its node died, or the servers
// did, while it was created.
func (w *world) fsck(all []*chaosClient) {
	n := w.nodes[0]
	cmd := exec.Command(n.fermata, "fsck")
	cmd.Env = append(os.Environ(), "FERMATA_HOME="+n.home)
	out, err := cmd.Output()
	known := make(map[string]bool)
	for _, c := range all {
		known[string(c.id)] = true
	}
	var bad []string
	for line := range strings.Lines(string(out)) {
		last := len(bad) - 1
		switch {
		case strings.HasPrefix(line, "CONVERSATION"), strings.HasSuffix(line, " ok\n"):
		case strings.HasSuffix(line, " never begun\n") && !known[strings.Fields(line)[0]]:
			w.logf("created, and then nothing: %s", line)
		case line == "  start: the conversation is empty\n" && last >= 0 && !known[strings.Fields(bad[last])[0]]:
			w.logf("created, and then nothing: %s", bad[last])
			bad = bad[:last]
		default:
			bad = append(bad, line)
		}
	}
	if len(bad) > 0 || len(out) == 0 {
		w.t.Errorf("fsck: %v\n%s", err, strings.Join(bad, ""))
	}
}
