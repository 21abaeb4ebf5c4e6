package fleet

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	p "github.com/fermata-agent/fermata/protocol"
)

// settled waits, in a bubble, until a record is durable.
func settled(j journal.Journal, seq uint64) error {
	for range 1000 {
		if n, err := j.Durable(); err != nil || n >= seq {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("not durable after 10 s")
}

func streamInfo(t *testing.T, link nats.Link) *jetstream.StreamInfo {
	t.Helper()
	stream, err := link.JetStream.Stream(t.Context(), link.Name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo()
}

// A full stream says that conversations can be deleted: that works, also when not one more byte can be stored, and then
// there is room again.
func TestDeleteOnAFullStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		a := nats.New(t.Context(), nats.Options{MaxBytes: 256 << 10, Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
		defer a.Close()
		record := func(size int) journal.Entry {
			return journal.Entry{Turn: 1, Kind: "big", Body: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
		}
		write := func(id string, size int) (full error) {
			j, err := a.Create(t.Context(), id, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for n := uint64(1); n < 100 && full == nil; n++ {
				j.Append(record(size))
				full = settled(j, n)
			}
			j.Close()
			return full
		}
		link, err := a.Link(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := write("old", 60<<10); !errors.As(err, new(*refusal.FullError)) {
			t.Fatalf("written until %v", err)
		}
		if _, err := a.Create(t.Context(), "more", time.Now()); !errors.As(err, new(*refusal.FullError)) {
			t.Errorf("a conversation is created: %v", err)
		}
		// Whatever else uses the stream takes the last byte.
		for size := 60 << 10; size >= 0; size -= 100 {
			_, _ = link.JetStream.Publish(t.Context(), "fermata.aside.filler", make([]byte, size))
		}
		before := streamInfo(t, link)
		if err := a.Delete(t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
		after := streamInfo(t, link)
		if after.Config.MaxBytes != before.Config.MaxBytes || after.State.Bytes > 100<<10 {
			t.Errorf("the limit was %d and is %d; %d bytes are left", before.Config.MaxBytes, after.Config.MaxBytes, after.State.Bytes)
		}
		j, err := a.Create(t.Context(), "next", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
	})
}

// When the stream becomes full, turns end and say why, and their ends are recorded: there is a reserve. A turn that
// has ended so can be resumed when there is room again.
func TestTurnEndsOnAFullStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		var m *member
		m = newMember(t, nats.Options{
			MaxBytes: 300 << 10, Connect: []natsgo.Option{natsgo.InProcessServer(s)},
			Full: func(err error) {
				m.Local.StopAll(t.Context(), p.Error{Kind: p.ErrorJournal, Message: err.Error()})
			},
		})
		ids := []p.ConversationID{m.Begin(), m.Begin()}
		var receipts []p.Receipt
		over := make(chan struct{})
		defer close(over)
		for _, id := range ids { // both write until there is no room
			receipts = append(receipts, m.Say(id, "go"))
			r := m.Request()
			go func() { // ends with the test
				for {
					r.Delta(strings.Repeat("x", 1<<10))
					select {
					case <-time.After(20 * time.Millisecond):
					case <-over:
						return
					}
				}
			}()
		}
		var ends []engine.TurnEnd
		for i, id := range ids {
			end, err := engine.FollowTurn(t.Context(), m.c, id, receipts[i].Turn, receipts[i].Seq, nil)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		for i, end := range ends {
			if end.End.Reason != p.Failed || end.Unsaved || end.End.Error == nil || !strings.Contains(end.End.Error.Message, "the stream is full") {
				t.Errorf("turn %d ended as %+v, unsaved %v", i, end.End, end.Unsaved)
			}
		}
		if err := m.c.Delete(t.Context(), ids[1]); err != nil {
			t.Fatal(err)
		}
		if err := m.store.Room(t.Context()); err != nil {
			t.Error(err)
		}
		m.Say(ids[0], "go on")
		m.Request().Answer("done")
	})
}

// On a full stream a turn can be interrupted, and its conversation closed and opened again.
func TestInterruptOnAFullStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		m := newMember(t, nats.Options{MaxBytes: 100 << 10, Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
		id := m.Begin()
		receipt := m.Say(id, "go")
		r := m.Request()
		for n := 0; m.store.Room(t.Context()) == nil; n++ {
			r.Delta(strings.Repeat("x", 1<<10))
			time.Sleep(100 * time.Millisecond)
			if n > 1000 {
				t.Fatal("it is never full")
			}
		}
		m.Must(id, p.Interrupt{})
		end, err := engine.FollowTurn(t.Context(), m.c, id, receipt.Turn, receipt.Seq, nil)
		if err != nil || end.End.Reason != p.Interrupted || end.Unsaved {
			t.Errorf("it ended as %+v, unsaved %v: %v", end.End, end.Unsaved, err)
		}
		if err := m.c.Release(t.Context(), id); err != nil {
			t.Error(err)
		}
		if snap, err := m.c.Resume(t.Context(), id); err != nil || snap.Active {
			t.Errorf("active %v, %v", snap.Active, err)
		}
	})
}
