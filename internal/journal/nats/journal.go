package nats

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

// When text of open items is sent, and how much of one item.
const (
	flushEvery    = 40 * time.Millisecond
	flushBytes    = 4 << 10
	progressBytes = 1 << 20
)

// closeWait is how long Close tries to save what is left when the servers do not
// answer.
const closeWait = 5 * time.Second

// purgeBytes is how much text of closed items may be left in the stream.
const purgeBytes = 32 << 10

// A natsJournal is a log with a goroutine, run, that sends it to the stream. Records
// are sent one batch at a time: the next one has to name the sequence of the one before.
type natsJournal struct {
	*journal.Log
	store    *Store
	link     *link
	id       string
	recovery journal.Recovery
	ctx      context.Context // ends when the journal is dead, or waited long enough for Close
	cancel   context.CancelCauseFunc
	kick     chan struct{}      // room for one: run has something to do
	ready    chan error         // room for one: BeforeRecords has returned
	saved    chan delivery      // room for one: the batch under way has ended
	texted   chan textsSaved    // room for one: so have the texts
	purged   chan struct{}      // room for one
	again    chan chan struct{} // the conversation is to be begun again; what it holds is closed when it is, or has failed
	done     chan struct{}      // closed by run

	checkpointing chan struct{} // room for one: held during Checkpoint

	mu    sync.Mutex
	index index // guarded by mu

	w writer // owned by run
}

// A writer is how far run has come.
type writer struct {
	meta            // of the last message of records
	seq      uint64 // its sequence
	began    bool   // a batch is about to be sent, or under way
	sending  bool   // it is under way
	ending   bool   // the journal is being closed: giveUp is running
	batch    []journal.Pending
	texts    []journal.ItemText // under way
	texting  bool
	resend   bool // they were not acknowledged
	due      bool // flushEvery is over
	armed    bool // it is running
	textSeq  uint64
	textLeft int // bytes of text in the stream
	purging  bool
	again    chan struct{} // not nil: the conversation is to be begun again; see natsJournal.again
	begins   chan struct{} // the same, while that is under way
	err      error
}

type delivery struct {
	seq   uint64 // of the last message
	first uint64 // of the first
	err   error
}

type textsSaved struct {
	seqs []uint64
	err  error
}

// opened is where a journal begins.
type opened struct {
	meta
	seq      uint64 // of the message that opened it
	before   uint64 // of the message before
	lapses   int    // how often the lease had ended before
	recovery journal.Recovery
	index    index
	chunks   []journal.Chunk
	places   map[string]journal.Place
	textLeft int
	textSeq  uint64
}

// start makes a journal of a conversation that was opened, and reports whether it was missed when
// conversations were begun again.
func (s *Store) start(id string, l *link, o opened) (*natsJournal, bool) {
	j := &natsJournal{
		Log:      journal.NewLog(journal.LogOptions{Last: o.Last, Window: s.o.Window, ItemLimit: progressBytes, HoldText: true}),
		store:    s,
		link:     l,
		id:       id,
		recovery: o.recovery,
		kick:     make(chan struct{}, 1),
		ready:    make(chan error, 1),
		saved:    make(chan delivery, 1),
		texted:   make(chan textsSaved, 1),
		purged:   make(chan struct{}, 1),
		again:    make(chan chan struct{}),
		done:     make(chan struct{}),

		checkpointing: make(chan struct{}, 1),
		index:         o.index,
		w:             writer{meta: o.meta, seq: o.seq, textLeft: o.textLeft, textSeq: o.textSeq},
	}
	j.recovery.Last = o.Last
	j.ctx, j.cancel = context.WithCancelCause(s.base)
	j.SetBackend(j)
	j.Restore(o.chunks, o.places)
	if j.index.kinds == nil {
		j.index.kinds = make(map[string]uint64)
	}
	s.mu.Lock()
	s.open[id] = j
	missed := s.lapses != o.lapses
	s.mu.Unlock()
	go j.run() // stopped and waited for by Close
	return j, missed
}

// Appended implements Backend.
func (j *natsJournal) Appended() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// Wrote implements Backend.
func (j *natsJournal) Wrote(before, after int) {
	if before == 0 || before < flushBytes && after >= flushBytes {
		j.Appended()
	}
}

// run is the writer. It ends when the journal is closed or dead.
func (j *natsJournal) run() {
	defer close(j.done)
	flush, giveUp := time.NewTimer(flushEvery), time.NewTimer(closeWait)
	flush.Stop()  // sendTexts starts it
	giveUp.Stop() // step does
	defer giveUp.Stop()
	for j.step(flush, giveUp) {
		again := j.again
		if j.w.again != nil {
			again = nil // one after the other: each is waited for
		}
		select {
		case <-j.kick:
		case <-flush.C:
			j.w.due, j.w.armed = true, false
		case err := <-j.ready:
			j.sendRecords(err)
		case d := <-j.saved:
			j.recordsEnded(d)
		case t := <-j.texted:
			j.textsEnded(t)
		case <-j.purged:
			j.w.purging = false
		case j.w.again = <-again:
		case <-giveUp.C:
			j.cancel(refusal.ErrNoAnswer)
		}
	}
	if j.Status().Phase != journal.Dead {
		j.release()
	}
	j.store.mu.Lock()
	if j.store.open[j.id] == j {
		delete(j.store.open, j.id)
	}
	j.store.mu.Unlock()
	j.cancel(journal.ErrClosed)
	j.Enter(journal.Closed)
}

// step sends what there is. It reports whether there can be more to do.
func (j *natsJournal) step(flush, giveUp *time.Timer) bool {
	st, w := j.Status(), &j.w
	if st.Phase == journal.Dead {
		return false
	}
	switch failed := w.err != nil || st.Err != nil; {
	case w.again != nil && failed:
		close(w.again)
		w.again = nil
	case w.again != nil:
		j.sendBegin()
	case !failed:
		j.sendTexts(st, flush)
		if !w.began && len(j.Pending(st.Saved)) > 0 {
			w.began = true
			j.prepare()
		}
	}
	if st.Phase == journal.Running {
		return true
	}
	if !w.ending && (w.sending || w.texting || w.purging) {
		w.ending = true
		giveUp.Reset(closeWait)
	}
	return w.began || w.texting || w.purging || w.err == nil && j.Status().Err == nil && (j.Status().Untaken > 0 || w.resend)
}

// prepare calls BeforeRecords, if there is one, before records are sent.
func (j *natsJournal) prepare() {
	before := j.store.o.BeforeRecords
	if before == nil {
		j.sendRecords(nil)
		return
	}
	go func() { j.ready <- before(j.ctx) }() // buffered: run may have ended
}

// sendRecords sends everything that waits as one batch. Its first message is sent
// here, behind the text that was sent before.
func (j *natsJournal) sendRecords(err error) {
	if err != nil {
		j.fail(err)
		return
	}
	w := &j.w
	if st := j.Status(); st.Phase == journal.Dead || st.Err != nil {
		w.began = false
		return
	}
	w.batch = j.Pending(j.Status().Saved)
	next := w.meta
	next.Begin, next.Cut = false, false
	next.Last = w.batch[len(w.batch)-1].Seq
	j.mu.Lock()
	next.Far = j.index.far(next.Last)
	j.mu.Unlock()
	body := wire.EncodeRecords(w.batch)
	next.Bytes += int64(len(body))
	j.link.room.Add(len(body))
	b := j.link.newBatch(j.store.records(j.id), next, w.Last, body, w.seq)
	b.begin()
	w.meta, w.sending = next, true
	go func() { j.saved <- b.finish(j.ctx) }() // buffered: run may have ended
}

func (j *natsJournal) recordsEnded(d delivery) {
	w := &j.w
	w.began, w.sending = false, false
	if d.err != nil {
		j.fail(d.err)
		return
	}
	w.seq = d.seq
	if w.begins != nil {
		close(w.begins)
		if w.again == w.begins {
			w.again = nil
		}
		w.begins = nil
	}
	j.mu.Lock()
	j.index.add(w.batch, d.first)
	j.mu.Unlock()
	j.Commit(w.Last)
	w.batch = nil
	j.hint(d.seq)
	j.purgeTexts(purgeBytes)
}

// fail ends durability.
func (j *natsJournal) fail(err error) {
	w := &j.w
	w.began = false
	if w.err == nil {
		w.err = fmt.Errorf("save conversation: %w", j.store.explain(err))
	}
	j.Fail(w.err)
}

// sendTexts sends text of open items if it is time. What was not acknowledged is
// sent again, unless its item has been closed.
func (j *natsJournal) sendTexts(st journal.Status, flush *time.Timer) {
	w := &j.w
	if w.texting {
		return
	}
	if w.resend {
		w.resend = false
		w.texts = j.StillOpen(w.texts)
	}
	if len(w.texts) == 0 {
		if st.Untaken == 0 {
			return
		}
		if !w.due && st.Untaken < flushBytes && st.Phase == journal.Running {
			if !w.armed {
				w.armed = true
				flush.Reset(flushEvery)
			}
			return
		}
		w.texts = j.TakeText()
		w.due, w.armed = false, false
		flush.Stop()
	}
	if len(w.texts) == 0 {
		return
	}
	w.texting = true
	var waits []sent
	var err error
	for _, body := range wire.EncodeTexts(w.texts, min(wire.TextRoom, j.link.payload())) {
		m := meta{Epoch: w.Epoch, Node: w.Node, Prev: w.seq, Last: w.Last, Archived: w.Archived}
		w.Bytes += int64(len(body))
		j.link.room.Add(len(body))
		m.Bytes = w.Bytes
		w.textLeft += len(body)
		s, failed := j.link.send(message(j.store.texts(j.id), m, body))
		if failed != nil {
			err = failed
			break
		}
		waits = append(waits, s)
	}
	go func() { j.texted <- awaitTexts(j.ctx, waits, err) }() // buffered: run may have ended
}

// ackTimeout is how long a message may wait for its acknowledgement before it is
// looked for.
const ackTimeout = 2 * time.Second

func awaitTexts(ctx context.Context, waits []sent, err error) textsSaved {
	ctx, cancel := context.WithTimeoutCause(ctx, ackTimeout, refusal.ErrNoAnswer)
	defer cancel()
	t := textsSaved{err: err}
	for _, s := range waits {
		seq, err := s.wait(ctx)
		if err != nil && t.err == nil {
			t.err = err
		}
		t.seqs = append(t.seqs, seq)
	}
	if t.err != nil { // do not ask a server that is gone without a pause
		select {
		case <-time.After(retryWait):
		case <-ctx.Done():
		}
	}
	return t
}

func (j *natsJournal) textsEnded(t textsSaved) {
	w := &j.w
	w.texting = false
	if t.err != nil {
		w.resend = refusal.IsTransient(t.err) && j.ctx.Err() == nil
		if !w.resend {
			w.texts = nil
			if j.ctx.Err() == nil {
				j.fail(t.err)
			}
		}
		return
	}
	for _, text := range w.texts {
		j.SetPlace(text.Item, journal.Place{Offset: int64(t.seqs[0]), Next: w.Last + 1})
	}
	w.textSeq = t.seqs[len(t.seqs)-1]
	j.SaveText(w.texts)
	w.texts = nil
	j.hint(w.textSeq)
}

// hint wakes readers elsewhere. It may be lost.
func (j *natsJournal) hint(seq uint64) {
	_ = j.link.nc.Publish(j.store.hints(j.id), fmt.Appendf(nil, "%d", seq))
}

// purgeTexts deletes the text of items from the stream when all are closed and it
// is more than so many bytes.
func (j *natsJournal) purgeTexts(more int) {
	w := &j.w
	if w.purging || w.texting || w.textLeft <= more || len(j.Places()) > 0 {
		return
	}
	w.purging, w.textLeft = true, 0
	before := w.textSeq + 1
	go func() { // buffered: run may have ended
		j.purge(j.ctx, before)
		j.purged <- struct{}{}
	}()
}

func (j *natsJournal) purge(ctx context.Context, before uint64) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_ = j.link.purge(ctx, j.store.texts(j.id), before) // else the next one does
}

// release lets others open the conversation at once.
func (j *natsJournal) release() {
	w := &j.w
	ctx, cancel := context.WithTimeoutCause(j.ctx, closeWait, refusal.ErrNoAnswer)
	defer cancel()
	if w.textLeft > 0 && len(j.Places()) == 0 && j.Failure() == nil {
		j.purge(ctx, w.textSeq+1)
	}
	next := w.meta
	next.Begin, next.Cut, next.Closed = w.begins != nil, false, true // with a begin that could not be sent
	if j.Failure() != nil {
		next.Last = j.Status().Saved // the rest was never there
	}
	seq, err := j.link.deliver(ctx, j.store.records(j.id), next, nil, w.seq)
	if err != nil || j.Failure() != nil {
		return // the lease ends, or another has it
	}
	j.mu.Lock()
	ix := j.index.upTo(seq)
	j.mu.Unlock()
	j.link.saveIndex(ctx, j.id, ix)
	j.hint(seq)
}

// Old implements Backend.
func (j *natsJournal) Old(ctx context.Context, after, upTo uint64, limit int) ([]journal.Record, error) {
	j.mu.Lock()
	from := j.index.before(after + 1)
	j.mu.Unlock()
	l := j.link
	if l.nc.IsClosed() {
		return nil, fmt.Errorf("read closed journal: %w", ErrStoreClosed)
	}
	last, err := j.store.lastRecords(ctx, l, j.id)
	if err != nil {
		return nil, j.store.explain(err)
	}
	recs, err := readRecords(ctx, l.conn, j.store.records(j.id), span{from, last.seq}, after, upTo, limit)
	return fill(recs, after, min(upTo, after+uint64(limit))), err
}

// Recovery implements Journal.
func (j *natsJournal) Recovery() journal.Recovery { return j.recovery }

// Close implements Journal.
func (j *natsJournal) Close() error {
	j.Enter(journal.Closing)
	j.Appended()
	<-j.done
	return j.Failure()
}

// Abandon leaves the journal as the death of its process would, but for the lease.
// It is for tests of what comes after, and reports false if the journal is closed already.
func (j *natsJournal) Abandon() bool {
	alive := j.Kill()
	j.cancel(journal.ErrClosed)
	j.Appended()
	<-j.done
	return alive
}
