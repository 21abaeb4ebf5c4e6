package randomtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A fuse is a store that pulls the plug between two batches or within one, and knows which records were appended together.
type fuse struct {
	journal.Store
	pull func(id string, mode journal.CrashMode, r *rand.Rand)

	mu      sync.Mutex
	r       *rand.Rand
	left    int           // batches until it blows; 0 if it is not lit
	blown   bool          // it has, and the scenario has not started again since
	off     chan struct{} // closed when it blows
	at      time.Time     // when it did
	mode    journal.CrashMode
	batches int            // how many there were
	batchOf map[uint64]int // by the number of a record; what a crash took is written over
}

func newFuse(d Disk, seed uint64) *fuse {
	return &fuse{Store: d.Store, pull: d.Crash, r: rand.New(rand.NewPCG(seed, 4)), batchOf: map[uint64]int{}, off: make(chan struct{})}
}

// context returns one that ends when the fuse blows: whoever waits for an answer then gets none.
func (f *fuse) context(parent context.Context) (context.Context, context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithCancel(parent)
	off := f.off
	go func() { // ends with the scenario
		select {
		case <-off:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (f *fuse) Create(ctx context.Context, id string, at time.Time) (journal.Journal, error) {
	j, err := f.Store.Create(ctx, id, at)
	return f.wrap(j, id), err
}

func (f *fuse) Open(ctx context.Context, id string) (journal.Journal, error) {
	j, err := f.Store.Open(ctx, id)
	return f.wrap(j, id), err
}

func (f *fuse) wrap(j journal.Journal, id string) journal.Journal {
	if j == nil {
		return nil
	}
	return &fusedJournal{j, f, id}
}

type fusedJournal struct {
	journal.Journal
	fuse *fuse
	id   string
}

// Append may find the power gone: then nothing is recorded from this batch on.
func (j *fusedJournal) Append(entries ...journal.Entry) uint64 {
	f := j.fuse
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left > 0 {
		if f.left--; f.left == 0 {
			f.blowSoon(j.id)
		}
	}
	last := j.Journal.Append(entries...)
	if !f.blown {
		f.batches++
		for i := range entries {
			f.batchOf[last-uint64(i)] = f.batches
		}
	}
	return last
}

// blowSoon pulls the plug before the batch, or while it is being made durable, with the mutex.
func (f *fuse) blowSoon(id string) {
	if f.r.IntN(2) == 0 {
		f.blow(id)
		return
	}
	off := f.off
	time.AfterFunc(time.Duration(f.r.IntN(1000))*time.Microsecond, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.off == off && !f.blown {
			f.blow(id)
		}
	})
}

// blow pulls the plug, with the mutex.
func (f *fuse) blow(id string) {
	f.left, f.blown, f.at = 0, true, time.Now()
	f.mode = []journal.CrashMode{journal.CrashKill, journal.CrashPower}[f.r.IntN(2)]
	f.pull(id, f.mode, f.r)
	close(f.off)
}

// light has the fuse blow at one of the next batches.
func (f *fuse) light() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.blown {
		f.left = 1 + f.r.IntN(20)
	}
}

// putOut keeps it from blowing, and reports whether it has blown already.
func (f *fuse) putOut() bool {
	f.mu.Lock()
	f.left = 0
	f.mu.Unlock()
	time.Sleep(time.Millisecond) // it may be about to
	return f.isBlown()
}

// crash blows it now, if it has not blown yet, and reports when it did, and how.
func (f *fuse) crash(id string) (time.Time, journal.CrashMode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.blown {
		f.blow(id)
	}
	return f.at, f.mode
}

func (f *fuse) isBlown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blown
}

// replace puts a new one in. Some blow while the conversation is recovered.
func (f *fuse) replace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blown, f.off = false, make(chan struct{})
	if f.r.IntN(4) == 0 {
		f.left = 1 + f.r.IntN(3)
	}
}

// restart starts again after a crash.
func (s *scenario) restart() {
	at, mode := s.fuse.crash(string(s.id))
	for {
		s.crashes = append(s.crashes, time.Now())
		s.engine.Kill()
		s.end()
		time.Sleep(time.Minute) // the machine is off: its processes die

		s.fuse.replace()
		s.start()
		snap, err := s.engine.Resume(s.ctx, s.id)
		if err == nil {
			s.kept += len(snap.PendingApprovals)
			break
		}
		if s.fuse.isBlown() { // while it recovered
			_, again := s.fuse.crash(string(s.id))
			mode = max(mode, again) // what a power cut takes is more
			continue
		}
		if errors.Is(err, errDisk) {
			return
		}
		s.t.Fatalf("resume after a crash: %v", err)
	}
	after := s.events()
	s.prefix(after)
	s.nothingLost(after, at, mode)
	s.accounted(after)
	known := map[p.CallID]bool{}
	for _, e := range after {
		if b, ok := e.Body.(*p.CommandStarted); ok {
			known[b.Call] = true
		}
	}
	for _, id := range s.world.ran {
		if !known[id] {
			s.t.Errorf("call %s ran, and the journal does not know it", id)
		}
	}
	s.world.knownJobs(after)
	s.readers = nil
	s.watchEnds()
	s.attach()
}
