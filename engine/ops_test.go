package engine_test

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/internal/randomtest"
	p "github.com/fermata-agent/fermata/protocol"
)

// An owner dies while it records a message that changes settings. The client submits the op again, as
// remote.Router does, and gets a receipt: the message must be there, once.
func TestResubmittedMessageWithOverridesIsNotLost(t *testing.T) {
	for name, open := range map[string]func(*testing.T, journal.MemoryOptions) randomtest.Disk{
		"memory": func(_ *testing.T, o journal.MemoryOptions) randomtest.Disk {
			s := journal.NewMemoryStore(o)
			return randomtest.Disk{Store: s, Crash: s.Crash}
		},
		"files": func(t *testing.T, o journal.MemoryOptions) randomtest.Disk {
			s := journaltest.NewFileStore(t, o)
			return randomtest.Disk{Store: s, Crash: s.Crash}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				for _, mode := range []journal.CrashMode{journal.CrashKill, journal.CrashPower} {
					synctest.Test(t, func(t *testing.T) { resubmit(t, seed, mode, open) })
				}
			}
		})
	}
}

func resubmit(t *testing.T, seed uint64, mode journal.CrashMode, open func(*testing.T, journal.MemoryOptions) randomtest.Disk) {
	var delay atomic.Int64
	disk := open(t, journal.MemoryOptions{SyncDelay: func() time.Duration { return time.Duration(delay.Load()) }})
	one := enginetest.New(t, enginetest.Options{Store: disk.Store})
	id := one.Begin()
	synctest.Wait()
	delay.Store(int64(time.Second))
	model := "other"
	op := p.UserTurn{Content: p.Text("do not lose me"), Overrides: &p.Overrides{Model: &model}}
	ctx := engine.WithClient(t.Context(), engine.Client{Name: "test", Op: "op-1"})
	go one.Submit(ctx, id, op) // it is never answered
	time.Sleep(100 * time.Millisecond)
	disk.Crash(string(id), mode, rand.New(rand.NewPCG(seed, 1)))
	one.Kill()
	delay.Store(0)

	two := enginetest.New(t, enginetest.Options{Store: disk.Store})
	r, err := two.Submit(ctx, id, op) // the same op, to the next owner
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	v, err := disk.Store.View(t.Context(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	recs, err := v.Read(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	messages := 0
	for _, rec := range recs {
		kinds = append(kinds, rec.Kind)
		if strings.Contains(string(rec.Body), "do not lose me") {
			messages++
		}
	}
	if messages != 1 || r.Input != 1 || r.State != p.TakenStarted {
		t.Errorf("seed %d, crash %d: answered %+v, and the message is there %d times: %q", seed, mode, r, messages, kinds)
	}
}

// A message that is refused changes no settings.
func TestRefusedMessageChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		before, err := e.Resume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		model := "other"
		ctx := engine.WithClient(t.Context(), engine.Client{Name: "test", Op: "op-1"})
		ut := p.UserTurn{Content: p.Text("hello"), WhenBusy: p.Steer, Overrides: &p.Overrides{Model: &model}}
		_, err = e.Submit(ctx, id, ut)
		after, _ := e.Resume(t.Context(), id)
		if err == nil || after.Settings.Model != before.Settings.Model || after.Last != before.Last {
			t.Errorf("refused with %v: the model is %q, was %q; the last event is %d, was %d", err, after.Settings.Model, before.Settings.Model, after.Last, before.Last)
		}
		if r, err := e.Submit(ctx, id, ut); err == nil {
			t.Errorf("the same op again is accepted: %+v", r)
		}
	})
}
