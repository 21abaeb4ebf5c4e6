package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// A chaosClient runs turns in one conversation, on whatever node works, and writes down what it
// is given.
type chaosClient struct {
	w    *world
	i    int
	r    *rand.Rand
	id   p.ConversationID
	node *chaosNode // where the conversation was used last

	mu       sync.Mutex
	events   map[p.Seq]string
	last     p.Seq
	texts    map[p.ItemID]string
	ended    map[p.TurnID]int
	receipts []p.Receipt
	turns    int
}

func newChaosClient(w *world, i int, r *rand.Rand) *chaosClient {
	return &chaosClient{w: w, i: i, r: r, events: make(map[p.Seq]string), texts: make(map[p.ItemID]string), ended: make(map[p.TurnID]int)}
}

// run runs turns until ctx ends, and then sees to it that the last one has ended.
func (c *chaosClient) run(ctx context.Context, slots chan struct{}) {
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		c.turn(ctx)
		<-slots
		pauseFor(ctx, time.Duration(c.r.IntN(1000))*time.Millisecond)
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	if c.id == "" {
		return
	}
	over, cancel := context.WithTimeout(c.w.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if err := c.settle(over); err == nil {
			return
		} else if over.Err() != nil {
			c.w.t.Errorf("conversation %s cannot be resumed in the end: %v", c.id, err)
			return
		}
		pauseFor(over, 100*time.Millisecond)
	}
}

// settle resumes the conversation, wherever that works, and interrupts what runs.
func (c *chaosClient) settle(ctx context.Context) error {
	e, _, err := c.w.nodes[c.r.IntN(3)].connect(ctx)
	if err != nil {
		return err
	}
	snap, err := e.Resume(ctx, c.id)
	if err != nil {
		return err
	}
	if snap.Active {
		_, _ = e.Submit(ctx, c.id, p.Interrupt{})
		return fmt.Errorf("turn %d runs", snap.Turn)
	}
	follow, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	for ev, err := range e.Attach(follow, c.id, c.last, stop) {
		if err != nil {
			break
		}
		c.take(ev)
	}
	if c.last < snap.Last {
		return fmt.Errorf("it has %d events, %d were given", snap.Last, c.last)
	}
	return nil
}

// turn runs one turn. Whatever breaks, it goes on elsewhere.
func (c *chaosClient) turn(ctx context.Context) {
	n := c.w.nodes[c.r.IntN(3)]
	e, broken, err := n.connect(ctx)
	if err != nil {
		c.w.refused(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	use, leave := context.WithCancel(ctx)
	defer leave()
	stop := context.AfterFunc(use, func() {})
	defer stop()
	go func() { // ends with the turn
		select {
		case <-broken:
			leave()
		case <-use.Done():
		}
	}()
	if c.id == "" {
		id, err := e.Create(use, p.Settings{
			Cwd: c.w.dir, Provider: "demo", Model: "demo", Approval: p.ApprovalNever, Sandbox: p.SandboxPolicy{Mode: p.SandboxFullAccess},
		})
		if err != nil {
			c.w.refused(err)
			return
		}
		c.id = id
	}
	c.turns++
	receipt, err := e.Submit(use, c.id, p.UserTurn{Content: p.Text(c.task()), WhenBusy: p.Queue})
	if err == nil {
		c.receipts = append(c.receipts, receipt)
		c.node = n
		err = c.follow(use, e, receipt.Turn)
	}
	c.w.refused(err)
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if err == nil || down.IsZero() || len(c.receipts) == 0 || c.node != n {
		return
	}
	c.takeOver(ctx, n, down)
}

// task is what a turn is for.
func (c *chaosClient) task() string {
	switch c.r.IntN(4) {
	case 0:
		return fmt.Sprintf("talk %d", 5+c.r.IntN(100))
	case 1:
		return "run: echo hello"
	}
	return fmt.Sprintf("run: %s %s %dms", c.w.beat, filepath.Join(c.w.dir, fmt.Sprintf("%s.%d.beat", c.id, c.turns)), 500+c.r.IntN(5000))
}

// follow takes events until the turn has ended.
func (c *chaosClient) follow(ctx context.Context, e engine.Engine, turn p.TurnID) error {
	for ev, err := range e.Subscribe(ctx, c.id, c.last) {
		if err != nil {
			return err
		}
		c.take(ev)
		if _, ended := ev.Body.(*p.TurnEnded); ended && ev.Turn >= turn && !ev.Unsaved {
			return nil
		}
		if c.r.IntN(200) == 0 {
			_, _ = e.Submit(ctx, c.id, p.Interrupt{})
		}
	}
	return ctx.Err()
}

// takeOver resumes the conversation on another node, and notes how long after the fault that was.
func (c *chaosClient) takeOver(ctx context.Context, from *chaosNode, down time.Time) {
	for ctx.Err() == nil {
		n := c.w.nodes[c.r.IntN(3)]
		if n == from {
			continue
		}
		e, _, err := n.connect(ctx)
		if err == nil {
			var snap engine.Snapshot
			if snap, err = e.Resume(ctx, c.id); err == nil {
				c.w.tookOver(time.Since(down))
				_ = snap
				return
			}
		}
		c.w.refused(err)
		pauseFor(ctx, 20*time.Millisecond)
	}
}

// take writes an event down, and checks that it fits to what was given before.
func (c *chaosClient) take(ev p.Event) {
	if d, ok := ev.Body.(*p.Delta); ok {
		had := c.texts[d.Item]
		if d.Offset > int64(len(had)) {
			c.w.t.Errorf("conversation %s, item %s: text at %d, after %d bytes", c.id, d.Item, d.Offset, len(had))
			return
		}
		old := had[d.Offset:]
		if n := min(len(old), len(d.Text)); old[:n] != d.Text[:n] {
			c.w.t.Errorf("conversation %s, item %s: text at %d was %q, is %q", c.id, d.Item, d.Offset, old[:n], d.Text[:n])
		}
		if end := had[:d.Offset] + d.Text; len(end) > len(had) {
			c.texts[d.Item] = end
		}
		return
	}
	if ev.Unsaved {
		return
	}
	if ev.Seq != c.last+1 {
		c.w.t.Errorf("conversation %s: event %d after %d", c.id, ev.Seq, c.last)
	}
	c.last = max(c.last, ev.Seq)
	c.events[ev.Seq] = describe(ev)
	if _, ok := ev.Body.(*p.TurnEnded); ok {
		if c.ended[ev.Turn]++; c.ended[ev.Turn] > 1 {
			c.w.t.Errorf("conversation %s: turn %d ended twice", c.id, ev.Turn)
		}
	}
}

func describe(ev p.Event) string {
	body, _ := json.Marshal(ev.Body)
	return fmt.Sprintf("%d %s %s", ev.Turn, p.Kind(ev.Body), body)
}

// seen checks that what was given is in the journal.
func (c *chaosClient) seen(events []p.Event) {
	whole := make(map[p.ItemID]string)
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case *p.AssistantMessage:
			whole[b.Item] = b.Text
		case *p.ToolOutput:
			if b.Command != nil {
				whole[b.Call] = b.Command.Output
			}
		}
		if was, ok := c.events[ev.Seq]; ok && was != describe(ev) {
			c.w.t.Errorf("conversation %s: event %d was %s, is %s", c.id, ev.Seq, was, describe(ev))
		}
	}
	if int(c.last) > len(events) {
		c.w.t.Errorf("conversation %s: event %d was given, the journal has %d", c.id, c.last, len(events))
	}
	for item, text := range c.texts {
		if !strings.HasPrefix(whole[item], text) {
			c.w.t.Errorf("conversation %s, item %s: %q was seen, the journal has %q", c.id, item, text, whole[item])
		}
	}
	for _, r := range c.receipts {
		if int(r.Seq) > len(events) {
			c.w.t.Errorf("conversation %s: a message was accepted as event %d, the journal has %d", c.id, r.Seq, len(events))
		}
	}
}
