package client

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	p "github.com/fermata-agent/fermata/protocol"
)

const (
	// FrameTime is the least time between two batches: as often as the eye sees.
	FrameTime = 16 * time.Millisecond

	// A batch that is not taken does not grow without end. What is not read
	// stays in the journal, and is read later.
	batchEvents = 4096
	batchBytes  = 1 << 20
)

// A Feed follows one conversation.
type Feed struct {
	batches chan Batch // received by Next, never closed
	done    <-chan struct{}
	stop    context.CancelFunc
}

// A Batch is what happened since the last one. It is a message to the program.
type Batch struct {
	From   *Feed     // whose it is
	Events []p.Event // deltas that follow each other are put together
	Err    error     // the last thing a feed gives; see [PanicError]

	size int
	text *strings.Builder // of the last event, if that is a delta
}

// Follow starts a feed of what a subscription gives. It ends with ctx, which stop
// ends, or with an error.
func Follow(ctx context.Context, events iter.Seq2[p.Event, error], stop context.CancelFunc) *Feed {
	f := &Feed{batches: make(chan Batch), done: ctx.Done(), stop: stop}
	in := make(chan happened)
	go read(ctx, events, in) // ends with ctx, at the latest
	go f.collect(ctx, in)    // the same
	return f
}

// happened is what a subscription gives.
type happened struct {
	event p.Event
	err   error
}

func read(ctx context.Context, events iter.Seq2[p.Event, error], in chan<- happened) {
	send := func(h happened) bool {
		select {
		case in <- h:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() { // a panic here would leave the terminal as it is
		if r := recover(); r != nil {
			send(happened{err: &PanicError{r, debug.Stack()}})
		}
	}()
	for e, err := range events {
		if !send(happened{e, err}) {
			return
		}
	}
}

// A PanicError carries a panic of another goroutine to the one that can
// restore the terminal.
type PanicError struct {
	Value any    // of the panic
	Stack []byte // of the goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v\n%s", e.Value, e.Stack) }

func (f *Feed) collect(ctx context.Context, in <-chan happened) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := Batch{From: f}
	due := false
	for {
		take, give := in, f.batches
		if next.full() {
			take = nil
		}
		if !due || next.empty() {
			give = nil
		}
		select {
		case h := <-take:
			next.add(h)
		case give <- next.closed():
			if next.Err != nil {
				return
			}
			next, due = Batch{From: f}, false
			timer.Reset(FrameTime)
		case <-timer.C:
			due = true
		case <-ctx.Done():
			return
		}
	}
}

// Next is the command that waits for the next batch.
func (f *Feed) Next() tea.Msg {
	select {
	case b := <-f.batches:
		return b
	case <-f.done:
		return nil
	}
}

func (b *Batch) empty() bool { return len(b.Events) == 0 && b.Err == nil }

func (b *Batch) full() bool {
	return len(b.Events) >= batchEvents || b.size >= batchBytes || b.Err != nil
}

func (b *Batch) add(h happened) {
	if h.err != nil {
		b.Err = h.err
		return
	}
	d, ok := h.event.Body.(*p.Delta)
	if !ok {
		b.close()
		b.Events = append(b.Events, h.event)
		return
	}
	b.size += len(d.Text)
	if b.text != nil {
		last := b.Events[len(b.Events)-1].Body.(*p.Delta)
		if last.Item == d.Item && last.Kind == d.Kind && last.Offset+int64(b.text.Len()) == d.Offset {
			b.text.WriteString(d.Text)
			return
		}
	}
	b.close()
	own := *d // the other belongs to the engine
	e := h.event
	e.Body = &own
	b.Events = append(b.Events, e)
	b.text = &strings.Builder{}
	b.text.WriteString(d.Text)
}

// close gives the last delta its text.
func (b *Batch) close() {
	if b.text == nil {
		return
	}
	b.Events[len(b.Events)-1].Body.(*p.Delta).Text = b.text.String()
	b.text = nil
}

// closed is the batch as it is handed over, which may be asked for often and
// happen later.
func (b *Batch) closed() Batch {
	if b.text != nil {
		b.Events[len(b.Events)-1].Body.(*p.Delta).Text = b.text.String()
	}
	out := *b
	out.text = nil
	return out
}

// Stop ends the feed.
func (f *Feed) Stop() { f.stop() }
