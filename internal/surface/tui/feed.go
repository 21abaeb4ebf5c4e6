package tui

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
	// frame is the least time between two batches: as often as anybody sees.
	frame = 16 * time.Millisecond

	// A batch that nobody takes does not grow without end. What is not read
	// stays in the journal, and is read later.
	batchEvents = 4096
	batchBytes  = 1 << 20
)

// A feed follows one conversation. However fast events come, the program gets
// at most one batch for each frame.
type feed struct {
	batches chan batch // received by next, closed by nobody
	done    <-chan struct{}
	stop    context.CancelFunc
}

// A batch is what happened since the last one. It is a message to the model.
type batch struct {
	from   *feed
	events []p.Event // deltas that follow each other are put together
	err    error     // the last thing a feed gives

	size int
	text *strings.Builder // of the last event, if that is a delta
}

// follow starts a feed. It ends with ctx, with stop, or with an error.
func follow(ctx context.Context, events iter.Seq2[p.Event, error], stop context.CancelFunc) *feed {
	f := &feed{batches: make(chan batch), done: ctx.Done(), stop: stop}
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
			send(happened{err: &panicError{r, debug.Stack()}})
		}
	}()
	for e, err := range events {
		if !send(happened{e, err}) {
			return
		}
	}
}

// A panicError carries a panic of another goroutine to the one that can
// restore the terminal.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%v\n%s", e.value, e.stack) }

func (f *feed) collect(ctx context.Context, in <-chan happened) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := batch{from: f}
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
			if next.err != nil {
				return
			}
			next, due = batch{from: f}, false
			timer.Reset(frame)
		case <-timer.C:
			due = true
		case <-ctx.Done():
			return
		}
	}
}

// next is the command that waits for the next batch.
func (f *feed) next() tea.Msg {
	select {
	case b := <-f.batches:
		return b
	case <-f.done:
		return nil
	}
}

func (b *batch) empty() bool { return len(b.events) == 0 && b.err == nil }

func (b *batch) full() bool {
	return len(b.events) >= batchEvents || b.size >= batchBytes || b.err != nil
}

func (b *batch) add(h happened) {
	if h.err != nil {
		b.err = h.err
		return
	}
	d, ok := h.event.Body.(*p.Delta)
	if !ok {
		b.close()
		b.events = append(b.events, h.event)
		return
	}
	b.size += len(d.Text)
	if b.text != nil {
		last := b.events[len(b.events)-1].Body.(*p.Delta)
		if last.Item == d.Item && last.Kind == d.Kind && last.Offset+int64(b.text.Len()) == d.Offset {
			b.text.WriteString(d.Text)
			return
		}
	}
	b.close()
	own := *d // the other belongs to the engine
	e := h.event
	e.Body = &own
	b.events = append(b.events, e)
	b.text = &strings.Builder{}
	b.text.WriteString(d.Text)
}

// close gives the last delta its text.
func (b *batch) close() {
	if b.text == nil {
		return
	}
	b.events[len(b.events)-1].Body.(*p.Delta).Text = b.text.String()
	b.text = nil
}

// closed is the batch as it is handed over, which may be asked for often and
// happen later.
func (b *batch) closed() batch {
	if b.text != nil {
		b.events[len(b.events)-1].Body.(*p.Delta).Text = b.text.String()
	}
	out := *b
	out.text = nil
	return out
}
