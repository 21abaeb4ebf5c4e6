// Package randomtest runs random scenarios on an engine over any store: clients that
// come and go, interrupts, approvals, crashes, slow and failing disks. [Run] checks that
// the promises are kept.
package randomtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/fsck"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/native"
	p "github.com/fermata-agent/fermata/protocol"
)

const stopBound = 1500 * time.Millisecond

// Options is how the store of a scenario behaves. It is the same for all versions.
type Options = journal.MemoryOptions

// A Disk is a place for journals that can lose its power.
type Disk struct {
	Store journal.Store
	Crash func(id string, mode journal.CrashMode, r *rand.Rand)
}

// weather says how slow and how broken a disk is.
type weather struct {
	mu    sync.Mutex
	r     *rand.Rand
	fails bool // from some time on
}

func (w *weather) delay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.r.IntN(20) {
	case 0: // also for longer than a stopped turn waits for its workers
		return time.Duration(1+w.r.IntN(5)) * time.Second
	case 1, 2, 3:
		return time.Duration(w.r.IntN(20)) * time.Millisecond
	}
	return time.Millisecond
}

var errDisk = errors.New("no space left on device")

func (w *weather) error() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails && w.r.IntN(30) == 0 {
		return errDisk
	}
	return nil
}

// A reader is a client with a random cursor that takes its time.
type reader struct {
	after  p.Cursor
	mu     sync.Mutex
	events []p.Event             // durable ones
	texts  map[p.ItemID]string   // what it has put together from deltas
	seen   map[p.ItemID][]sawAt  // when it saw how much
	whole  map[p.ItemID]struct{} // items whose end it saw
	ended  bool
}

type sawAt struct {
	when time.Time
	text string
}

func (rd *reader) follow(t testing.TB, ctx context.Context, e engine.Engine, id p.ConversationID, w *world) {
	for ev, err := range e.Subscribe(ctx, id, rd.after) {
		if err != nil {
			rd.mu.Lock()
			rd.ended = true // its journal failed, or the engine was closed
			rd.mu.Unlock()
			return
		}
		time.Sleep(time.Duration(w.rnd(4)) * time.Millisecond)
		rd.take(t, ev)
	}
}

func (rd *reader) take(t testing.TB, ev p.Event) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	d, ok := ev.Body.(*p.Delta)
	if !ok {
		if n := len(rd.events); n > 0 && ev.Seq != rd.events[n-1].Seq+1 || n == 0 && ev.Seq != rd.after+1 {
			t.Errorf("a reader from %d got %d after %d events", rd.after, ev.Seq, n)
		}
		rd.events = append(rd.events, ev)
		rd.check(t, ev)
		return
	}
	if strings.Contains(d.Text, "LATE") {
		t.Errorf("item %s: %q came after the stop", d.Item, d.Text)
	}
	if _, done := rd.whole[d.Item]; done {
		t.Errorf("item %s: a delta after its end", d.Item)
	}
	if int64(len(rd.texts[d.Item])) != d.Offset {
		t.Errorf("item %s: delta at %d, had %d", d.Item, d.Offset, len(rd.texts[d.Item]))
	}
	if ev.Turn != d.Item.Turn {
		t.Errorf("item %s: a delta of turn %d", d.Item, ev.Turn)
	}
	rd.texts[d.Item] += d.Text
	rd.seen[d.Item] = append(rd.seen[d.Item], sawAt{time.Now(), rd.texts[d.Item]})
}

// check compares what the deltas of an item added up to with the item.
func (rd *reader) check(t testing.TB, ev p.Event) {
	var id p.ItemID
	var text string
	switch b := ev.Body.(type) {
	case *p.AssistantMessage:
		id, text = b.Item, b.Text
	case *p.ToolOutput:
		id = b.Call
		if b.Command != nil {
			text = b.Command.Output
		}
		if b.Repaired {
			return
		}
	case *p.BackgroundEnded:
		id, text = b.ID.Item(), b.Result.Output
	default:
		return
	}
	rd.whole[id] = struct{}{}
	if got := rd.texts[id]; got != "" && got != text {
		t.Errorf("item %s: deltas add up to %q, the item is %q", id, got, text)
	}
}

// A scenario is one random run.
type scenario struct {
	t       *testing.T
	r       *rand.Rand
	fuse    *fuse
	weather *weather
	world   *world
	engine  *engine.Local
	id      p.ConversationID

	readers  []*reader
	stop     context.CancelFunc // of the readers
	wg       sync.WaitGroup
	ctx      context.Context
	accepted map[p.InputID]bool // messages we have a receipt for
	ops      outcomes
	crashes  []time.Time

	cancelled, kept int // see tally
}

func (s *scenario) start() {
	var tools []engine.Tool
	for _, name := range []string{"work", "look", "run", "ask", "type", "user_shell"} {
		tools = append(tools, native.Tool(randomTool{s.world, name}))
	}
	cfg := engine.Config{
		Model: native.Model(s.world), Tools: tools, StopTimeout: stopBound,
		Turns: engine.TurnConfig{MaxParallel: s.world.most, Environment: func(p.Settings) p.Environment { // some messages find another day
			return p.Environment{Date: time.Now().Truncate(3 * time.Second).String()}
		}},
	}
	s.engine = enginetest.Open(s.t, s.fuse, cfg)
	s.ctx, s.stop = s.fuse.context(s.t.Context())
}

func (s *scenario) attach() {
	snap, err := s.engine.Resume(s.ctx, s.id)
	if err != nil {
		return
	}
	rd := &reader{
		after: p.Cursor(s.r.Uint64N(uint64(snap.Last) + 1)), texts: map[p.ItemID]string{},
		seen: map[p.ItemID][]sawAt{}, whole: map[p.ItemID]struct{}{},
	}
	if n := s.visible(); rd.after > n {
		rd.after = n
	}
	s.readers = append(s.readers, rd)
	e := s.engine
	s.wg.Go(func() { rd.follow(s.t, s.ctx, e, s.id, s.world) })
}

func (s *scenario) visible() p.Seq {
	all := s.events()
	return p.Seq(len(all))
}

// events reads what is recorded, as somebody who only reads.
func (s *scenario) events() []p.Event {
	v, err := s.fuse.View(s.t.Context(), string(s.id))
	if err != nil {
		s.t.Fatalf("view: %v", err)
	}
	defer v.Close()
	var all []p.Event
	for {
		recs, err := v.Read(s.t.Context(), uint64(len(all)), 1000)
		if err != nil {
			s.t.Fatalf("read: %v", err)
		}
		if len(recs) == 0 {
			return all
		}
		for _, rec := range recs {
			body, err := p.DecodeBody(rec.Kind, rec.Body)
			if err != nil {
				s.t.Fatalf("decode: %v", err)
			}
			all = append(all, p.Event{Seq: p.Seq(rec.Seq), Time: rec.Time, Turn: p.TurnID(rec.Turn), Body: body, Unsaved: rec.Unsaved})
		}
	}
}

func (s *scenario) act() {
	if s.fuse.isBlown() {
		s.restart()
	}
	submit := s.submit
	switch k := s.r.IntN(35); {
	case k < 6:
		mode := []p.WhenBusy{"", p.Steer, p.Queue, p.Replace}[s.r.IntN(4)]
		submit(p.UserTurn{WhenBusy: mode, Overrides: s.randomSettings()})
	case k < 9:
		submit(p.Interrupt{})
	case k < 15:
		s.approve(submit)
	case k == 15:
		submit(p.DeleteInput{Input: p.InputID(s.r.IntN(10))})
	case k == 16:
		submit(p.EditInput{Input: p.InputID(s.r.IntN(10)), Content: p.Text("edited")})
	case k == 17:
		submit(p.Compact{})
	case k == 18:
		submit(p.Revert{Before: p.TurnID(s.r.IntN(4))})
	case k == 19:
		cwd := fmt.Sprint("/w", s.r.IntN(3))
		submit(p.Configure{Overrides: p.Overrides{Cwd: &cwd}})
	case k < 22:
		s.attach()
	case k == 22 && s.r.IntN(2) == 0:
		s.fuse.crash(string(s.id))
		s.restart()
	case k == 23 && s.r.IntN(3) == 0:
		s.reopen()
	case k == 24, k == 25:
		submit(p.UserShell{Command: "ls"})
	case k == 26:
		submit(p.TryNow{Overrides: s.randomSettings()})
	case k == 27:
		submit(p.Rename{Title: "title"})
	case k == 28:
		s.fuse.light()
	case k > 31:
		s.resolveReturned(submit)
	case k > 28:
		if snap, err := s.engine.Resume(s.ctx, s.id); err == nil && len(snap.Background) > 0 {
			submit(p.KillBackground{ID: snap.Background[s.r.IntN(len(snap.Background))].ID})
		}
	}
}

func (s *scenario) approve(submit func(p.Op) p.Receipt) {
	snap, err := s.engine.Resume(s.ctx, s.id)
	if err != nil {
		return
	}
	for _, call := range snap.PendingApprovals {
		decisions := []p.Decision{p.Approved, p.Approved, p.ApprovedForSession, p.Denied, p.Abort}
		submit(p.Approve{Call: call, Decision: decisions[s.r.IntN(len(decisions))]})
	}
}

// prefix checks that nothing that a reader was given is taken back.
func (s *scenario) prefix(after []p.Event) {
	for _, rd := range s.readers {
		for _, e := range rd.events {
			if e.Unsaved {
				break
			}
			if i := int(e.Seq) - 1; i >= len(after) || p.Kind(after[i].Body) != p.Kind(e.Body) || after[i].Turn != e.Turn {
				s.t.Fatalf("event %d (%s) was given to a reader and is not there after the crash", e.Seq, p.Kind(e.Body))
			}
		}
	}
}

// nothingLost checks that text a reader saw well before a kill is recorded.
func (s *scenario) nothingLost(after []p.Event, at time.Time, mode journal.CrashMode) {
	if mode != journal.CrashKill || s.weather.fails {
		return
	}
	texts := map[p.ItemID]string{}
	for _, e := range after {
		switch b := e.Body.(type) {
		case *p.AssistantMessage:
			texts[b.Item] = b.Text
		case *p.ToolOutput:
			if b.Command != nil {
				texts[b.Call] = b.Command.Output
			}
		case *p.BackgroundEnded:
			texts[b.ID.Item()] = b.Result.Output
		}
	}
	for _, rd := range s.readers {
		for id, saws := range rd.seen {
			for _, saw := range saws {
				if at.Sub(saw.when) > 100*time.Millisecond && !strings.HasPrefix(texts[id], saw.text) {
					s.t.Errorf("item %s: %q was seen before the kill, recorded is %q\n%s", id, saw.text, texts[id], around(after, 0))
				}
			}
		}
	}
}

// reopen closes the engine as it should be and starts again.
func (s *scenario) reopen() {
	if s.fuse.putOut() {
		s.restart()
		return
	}
	err := s.engine.Shutdown(s.t.Context())
	if err != nil && !errors.Is(err, errDisk) {
		s.t.Errorf("shutdown: %v", err)
	}
	s.world.noJobs()
	s.end()
	s.start()
	if _, err = s.engine.Resume(s.ctx, s.id); err != nil && !errors.Is(err, errDisk) {
		s.t.Fatalf("resume: %v", err)
	}
	s.prefix(s.events())
	s.readers = nil
	s.watchEnds()
	s.attach()
}

// end lets the readers go and checks what they saw.
func (s *scenario) end() {
	synctest.Wait()
	s.stop()
	s.wg.Wait()
	time.Sleep(time.Minute) // what could not be stopped ends by itself
}

// settle brings the conversation to rest and checks everything.
func (s *scenario) settle() {
	if s.fuse.putOut() {
		s.restart()
		s.fuse.putOut()
	}
	for range 60 { // waiting messages start as their predecessors end
		_, _ = s.engine.Submit(s.ctx, s.id, p.Interrupt{})
		time.Sleep(4 * time.Second)
	}
	synctest.Wait()
	all := s.events()
	s.audit(all)
	s.auditOps(all)
	for _, b := range ends(all) {
		s.world.endings[b.Reason]++
	}
	countResolved(all, s.world.resolved)
	for i, rd := range s.readers {
		rd.mu.Lock()
		if want := all[min(int(rd.after), len(all)):]; len(rd.events) < len(want) && !rd.ended {
			s.t.Errorf("reader %d from %d saw %d events, want %d", i, rd.after, len(rd.events), len(want))
		}
		rd.mu.Unlock()
	}
	_ = s.engine.Shutdown(s.t.Context())
	s.end()
}

func (s *scenario) audit(all []p.Event) {
	var c fsck.Checker
	var started time.Time
	for _, e := range all {
		c.Apply(e)
		switch b := e.Body.(type) {
		case *p.StopRequested:
			started = e.Time
		case *p.TurnEnded:
			// The disk does not hold the end back, however slow it is. Closing gives
			// background commands, and with them the turn, the whole bound again.
			if took := e.Time.Sub(started); b.Reason != p.Completed && !s.weather.fails && !s.crashedBetween(started, e.Time) && took > 2*stopBound {
				s.t.Errorf("turn %d took %v to stop\n%s", e.Turn, took, around(all, e.Seq))
			}
		}
	}
	s.auditApprovals(all)
	for _, problem := range c.End() {
		s.t.Errorf("%v\n%s", problem, around(all, problem.Seq))
	}
	s.accounted(all)
}

// around shows the events near one.
func around(all []p.Event, at p.Seq) string {
	var b strings.Builder
	for _, e := range all {
		if at == 0 || e.Seq+25 > at && e.Seq < at+5 {
			fmt.Fprintf(&b, "%4d %s t%d %s\n", e.Seq, e.Time.Format("05.000"), e.Turn, enginetest.Line(e))
		}
	}
	return b.String()
}

func (s *scenario) crashedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(s.crashes, func(at time.Time) bool { return !at.Before(from) && !at.After(to) })
}

// A tally is what happened in all scenarios.
type tally struct {
	endings     map[p.EndReason]int  // how background commands ended
	resolved    map[p.Resolution]int // what became of returned messages
	resubmitted int                  // ops that were accepted when they were submitted to the next owner
	parallel    int                  // calls that began while others ran
	cancelled   int                  // approvals that a crash cancelled because calls ran
	kept        int                  // approvals that were open when a crash was recovered, and stayed so
}

func runScenario(t *testing.T, seed uint64, open func(*testing.T, Options) Disk, sum *tally) {
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		wth := &weather{r: rand.New(rand.NewPCG(seed, 3)), fails: seed%5 == 4}
		s := &scenario{
			t: t, r: rand.New(rand.NewPCG(seed, 1)), weather: wth, accepted: map[p.InputID]bool{},
			fuse: newFuse(open(t, Options{SyncDelay: wth.delay, SyncError: wth.error}), seed),
			ops:  outcomes{done: map[string]p.Op{}, refused: map[string]error{}},
			world: &world{
				t: t, r: rand.New(rand.NewPCG(seed, 2)), alive: map[p.CallID]bool{}, immortal: map[p.CallID]bool{}, alone: map[p.CallID]bool{},
				most: []int{8, 8, 3, 1}[seed%4], eager: seed%3 > 0,
				jobs: map[p.BackgroundID]*randomJob{}, endings: sum.endings, resolved: sum.resolved,
			},
		}
		s.start()
		var err error
		if s.id, err = s.engine.Create(s.ctx, p.Settings{Cwd: "/w", OnLimit: p.OnLimitHold}); err != nil {
			s.end()
			return // the disk was broken from the start
		}
		s.watchEnds()
		s.attach()
		for range 60 {
			s.act()
			time.Sleep(time.Duration(s.r.IntN(40)) * time.Millisecond)
			if s.r.IntN(20) == 0 {
				time.Sleep(4 * time.Second)
			}
			if t.Failed() {
				break
			}
		}
		s.settle()
		sum.resubmitted += s.ops.resubmitted
		sum.parallel += s.world.parallel
		sum.cancelled += s.cancelled
		sum.kept += s.kept
	})
}

// watchEnds checks, at the moment in which a turn's end can be seen, that
// nothing of the turn runs any more.
func (s *scenario) watchEnds() {
	e, w := s.engine, s.world
	ctx := s.ctx
	s.wg.Go(func() {
		for ev, err := range e.Subscribe(ctx, s.id, 0) {
			if err != nil {
				return
			}
			if b, ok := ev.Body.(*p.BackgroundEnded); ok {
				w.ended(b)
			}
			end, ok := ev.Body.(*p.TurnEnded)
			if !ok {
				continue
			}
			w.stopped(ev.Turn, end)
			w.mu.Lock()
			for id := range w.alive {
				if id.Turn == ev.Turn && !w.immortal[id] {
					s.t.Errorf("turn %d ended while call %s ran", ev.Turn, id)
				}
			}
			w.mu.Unlock()
		}
	})
}

// Run runs so many scenarios, each in a synctest bubble, on stores that open returns.
func Run(t *testing.T, scenarios int, open func(*testing.T, Options) Disk) {
	sum := tally{endings: map[p.EndReason]int{}, resolved: map[p.Resolution]int{}}
	for seed := range uint64(scenarios) {
		runScenario(t, seed, open, &sum)
		if t.Failed() {
			return
		}
	}
	if scenarios < 100 {
		return // too few to expect each end
	}
	for _, reason := range []p.EndReason{p.Completed, p.Interrupted, p.Crashed} {
		if n := sum.endings[reason]; n < scenarios/20 {
			t.Errorf("only %d background commands ended %s: the scenarios do not get there", n, reason)
		}
	}
	for _, as := range []p.Resolution{p.ResolvedSent, p.ResolvedTaken, p.ResolvedDropped} {
		if n := sum.resolved[as]; n < scenarios/10 {
			t.Errorf("only %d returned messages were %s: the scenarios do not get there", n, as)
		}
	}
	if sum.parallel < scenarios/2 || sum.cancelled < scenarios/50 || sum.kept < scenarios/20 {
		t.Errorf("%d calls began beside others, crashes cancelled %d approvals and kept %d: the scenarios do not get there", sum.parallel, sum.cancelled, sum.kept)
	}
	if sum.resubmitted < scenarios/20 {
		t.Errorf("only %d ops were submitted again and accepted: the scenarios do not get there", sum.resubmitted)
	}
	t.Logf("%d scenarios: %d ops were submitted again after a crash, and accepted; %d calls began beside others, crashes cancelled %d approvals and kept %d",
		scenarios, sum.resubmitted, sum.parallel, sum.cancelled, sum.kept)
}

// ends returns the ends of background commands.
func ends(events []p.Event) (out []*p.BackgroundEnded) {
	for _, e := range events {
		if b, ok := e.Body.(*p.BackgroundEnded); ok {
			out = append(out, b)
		}
	}
	return out
}
