package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/replay"
	p "github.com/fermata-agent/fermata/protocol"
)

// Subscribe gives every event after the cursor, then live ones.
func (l *Local) Subscribe(ctx context.Context, id p.ConversationID, after p.Cursor) iter.Seq2[p.Event, error] {
	return l.Attach(ctx, id, after, nil)
}

// Attach gives every event after the cursor, calls live, then gives live ones.
func (l *Local) Attach(ctx context.Context, id p.ConversationID, after p.Cursor, live func()) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		f := &follower{engine: l, id: id, after: uint64(after), live: live, events: replay.New(yield)}
		if err := f.run(ctx); !errors.Is(err, errStopped) {
			yield(p.Event{}, err)
		}
	}
}

// errStopped says that the subscriber wants nothing more.
var errStopped = errors.New("the subscriber has left")

// A follower gives the events of a conversation to one subscriber, from its journal while it is open here, else from the store.
type follower struct {
	engine *Local
	id     p.ConversationID
	after  uint64 // the last record given
	past   uint64 // the last one that was there at the beginning
	live   func() // nil when it was called
	events replay.Events
}

// run returns why there is nothing more to give.
func (f *follower) run(ctx context.Context) error {
	s, err := f.engine.withSlot(ctx, f.id, func(c *conversation.Conversation) error {
		snap, err := c.Follow(ctx)
		f.past = uint64(snap.Last)
		return err
	})
	if err != nil {
		return err
	}
	for {
		err := f.readOpen(ctx, s)
		s.conv.Unfollow()
		if err != nil {
			return err
		}
		if s, err = f.readReleased(ctx); err != nil {
			return err
		}
	}
}

// readOpen gives what an open conversation records, until it is released. Open items are given when there are no records left to
// give, and then all of them at once. Whoever writes may add to them faster than they are taken, so the past ends there all the same.
func (f *follower) readOpen(ctx context.Context, s *slot) error {
	reader := s.conv.Reader()
	source := reader.Follow(f.after)
	text := false // the last that was given was the text of open items
	for {
		if f.live != nil && f.after >= f.past && (text || !f.textLeft(ctx, reader)) {
			f.callLive()
		}
		recs, chunks, err := source.Next(ctx)
		if errors.Is(err, journal.ErrClosed) {
			return f.closed(ctx, s)
		}
		if err != nil {
			return err
		}
		if err := f.give(recs, chunks); err != nil {
			return err
		}
		text = len(chunks) > 0
	}
}

// closed reports why a conversation is closed: nil if it was only released.
func (f *follower) closed(ctx context.Context, s *slot) error {
	select {
	case <-s.conv.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// If the journal failed, what was given last is not on disk, and its numbers will be given again.
	if s.conv.Err() != nil || f.engine.isRemoved(s) {
		return ErrClosed
	}
	return nil
}

func (f *follower) callLive() {
	if f.live != nil {
		f.live()
		f.live = nil
	}
}

// textLeft reports whether there is text of open items that was not given.
func (f *follower) textLeft(ctx context.Context, r journal.Reader) bool {
	open, _ := r.OpenItems(ctx) // an open journal has them in memory
	return slices.ContainsFunc(open, func(c journal.Chunk) bool {
		id, err := p.ParseItemID(c.Item)
		return err == nil && c.Offset+int64(len(c.Text)) > f.events.Seen(id)
	})
}

func (f *follower) give(recs []journal.Record, chunks []journal.Chunk) error {
	if len(recs) > 0 {
		f.after = recs[len(recs)-1].Seq
	}
	if !f.events.Add(recs, chunks) {
		return errStopped
	}
	return nil
}

// readReleased gives what other processes append to a conversation that is not open here, until it is: then it returns its slot.
func (f *follower) readReleased(ctx context.Context) (*slot, error) {
	for {
		s, w, err := f.engine.watch(f.id)
		if err != nil {
			return nil, err
		}
		if s == nil {
			if err := f.readBeside(ctx, w); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if s.conv == nil {
			continue
		}
		if _, err := s.conv.Follow(ctx); err == nil {
			return s, nil
		} else if !errors.Is(err, ErrClosed) {
			return nil, err
		}
		if err := f.closed(ctx, s); err != nil {
			return nil, err
		}
	}
}

// readLimit is how many records are read at once.
const readLimit = 1000

// How often a released conversation is looked at: after something was appended, and when nothing is for long.
const (
	pollFirst = 100 * time.Millisecond
	pollLast  = 2 * time.Second
)

// readBeside gives what other processes append, until the watch ends.
func (f *follower) readBeside(ctx context.Context, w *watch) error {
	defer f.engine.unwatch(f.id, w)
	b := beside{follower: f}
	defer b.close()
	for {
		changed, stop := f.engine.storeOf(f.id).Watch(ctx, string(f.id))
		moved, err := b.follow(ctx, w, changed)
		stop()
		if err != nil || !moved {
			return err
		}
	}
}

// follow does it until the conversation is moved. It keeps the file open only while it changes.
func (b *beside) follow(ctx context.Context, w *watch, changed <-chan struct{}) (moved bool, err error) {
	wait := pollFirst
	for {
		news, err := b.look(ctx)
		if err != nil {
			return false, err
		}
		if wait = min(2*wait, pollLast); news {
			wait = pollFirst
		}
		if wait == pollLast {
			b.close()
		}
		var again <-chan time.Time
		if changed == nil || b.view != nil { // else nothing is to be done before the next report
			again = time.After(wait)
		}
		select {
		case <-again:
		case _, ok := <-changed:
			if !ok {
				return true, nil
			}
		case <-w.woken:
			if w.removed {
				return false, ErrClosed
			}
			return false, nil
		case <-b.engine.over:
			return false, ErrClosed
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// beside is how a follower reads a conversation that another process may have open.
type beside struct {
	*follower
	view journal.View // nil unless the conversation changes
	info journal.Info // as it was when it was last read
}

func (b *beside) close() {
	if b.view != nil {
		b.view.Close()
		b.view = nil
	}
}

// look gives what is new, and reports whether anything may have changed.
func (b *beside) look(ctx context.Context) (bool, error) {
	info, err := b.engine.storeOf(b.id).Stat(ctx, string(b.id))
	if err != nil {
		return false, transient(err)
	}
	if info.Size == b.info.Size && info.Modified.Equal(b.info.Modified) {
		return false, nil
	}
	if b.view == nil {
		if b.view, err = b.engine.view(ctx, b.id); err != nil {
			b.view = nil
			return false, transient(err)
		}
	}
	first := b.info == (journal.Info{})
	if b.info = info; first { // most likely it is as we left it
		tail, err := b.view.Tail(ctx, 1)
		if err != nil || len(tail) == 0 || tail[0].Seq <= b.after {
			b.close()
			return false, err
		}
	}
	return true, b.read(ctx)
}

// read gives everything there is.
func (b *beside) read(ctx context.Context) error {
	for {
		recs, err := b.view.Read(ctx, b.after, readLimit)
		if err != nil {
			return err
		}
		if len(recs) == 0 {
			break
		}
		if err := b.give(recs, nil); err != nil {
			return err
		}
	}
	chunks, err := b.view.OpenItems(ctx)
	if err != nil {
		return err
	}
	return b.give(nil, chunks)
}

// transient returns nil for errors that pass.
func transient(err error) error {
	if shortOfDescriptors(err) {
		return nil
	}
	return err
}
