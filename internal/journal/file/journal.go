package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/disk"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
)

// When bytes of open items are written, and how many of one item.
const (
	flushEvery    = 50 * time.Millisecond
	flushBytes    = 4 << 10
	progressBytes = 1 << 20
)

// textSync is how long bytes of open items are in the file before they are synced,
// if no record has them synced before: on a disk that is not slow, a power cut
// does not take what was seen a second ago.
const textSync = 800 * time.Millisecond

// A fileJournal is a log with a goroutine, run, that writes it to a file. Syncs
// run beside it, one at a time: while one takes its time, records and progress
// still reach the file, so that a kill does not lose them.
type fileJournal struct {
	*journal.Log
	store         *Store
	path          string
	file          File
	lock          *disk.LockFile
	recovery      journal.Recovery
	kick          chan struct{} // room for one: run has something to do
	synced        chan error    // room for one, the result of the sync that runs
	done          chan struct{} // closed by run
	checkpointing chan struct{} // room for one: held during Checkpoint

	mu    sync.Mutex
	index format.Index     // guarded by mu
	kinds map[string]int64 // guarded by mu; offset of the last record of each kind, or -1

	of uint32 // sum of the conversation's id
	w  writer // owned by run
}

// A writer is how far run has come.
type writer struct {
	size     int64  // of the file
	written  uint64 // last record in the file
	prev     uint32 // its sum
	syncing  bool
	syncSeq  uint64 // what will be durable when the sync is over
	syncSize int64
	safeSize int64 // what is durable
	err      error // of a write; nothing is written any more
	due      bool  // flushEvery is over
	armed    bool  // it is running
	textDue  bool  // textSync is over
	textOpen bool  // there are bytes of open items that no sync covers; textSync is running or over
	buf      []byte
}

// start makes a journal of an open and locked file.
func (s *Store) start(h *held, fnd found) *fileJournal {
	j := &fileJournal{
		Log:           journal.NewLog(journal.LogOptions{Last: fnd.last, Window: s.window, ItemLimit: progressBytes}),
		store:         s,
		path:          h.path,
		file:          h.file,
		lock:          h.lock,
		recovery:      fnd.recovery,
		kick:          make(chan struct{}, 1),
		synced:        make(chan error, 1),
		done:          make(chan struct{}),
		checkpointing: make(chan struct{}, 1),
		index:         fnd.index,
		kinds:         fnd.kinds,
		of:            fnd.of,
		w:             writer{size: fnd.size, safeSize: fnd.size, written: fnd.last, prev: fnd.sum},
	}
	j.SetBackend(j)
	places := make(map[string]journal.Place)
	for name, p := range fnd.open {
		places[format.Unquote([]byte(name))] = journal.Place{Offset: p.off, Next: p.next}
	}
	j.Restore(fnd.chunks, places)
	go j.run() // stopped and waited for by Close
	return j
}

// Appended implements Backend.
func (j *fileJournal) Appended() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// Wrote implements Backend. It runs for every delta: the writer is woken only
// for the first of a group, to start its clock, and when there is enough.
func (j *fileJournal) Wrote(before, after int) {
	if before == 0 || before < flushBytes && after >= flushBytes {
		j.Appended()
	}
}

// run is the writer. It ends when the journal is closed or dead.
func (j *fileJournal) run() {
	defer close(j.done)
	flush, sync := time.NewTimer(flushEvery), time.NewTimer(textSync)
	flush.Stop() // take starts it
	sync.Stop()  // step does
	for j.step(flush, sync) {
		select {
		case <-j.kick:
		case <-flush.C:
			j.w.due, j.w.armed = true, false
		case <-sync.C:
			j.w.textDue = true
		case err := <-j.synced:
			j.syncEnded(err)
		}
	}
	if st := j.Status(); st.Phase != journal.Dead && st.Err == nil && j.w.err == nil && !j.checkUnchanged(batch{}) {
		j.Fail(j.w.err)
	}
	if j.Status().Phase != journal.Dead {
		j.rescueRest()
	}
	j.file.Close()
	if j.Enter(journal.Closed) {
		j.lock.Release()
	} else {
		j.lock.Abandon()
	}
}

// step writes what there is and starts a sync if one is due. It reports whether
// there can be more to do.
func (j *fileJournal) step(flush, sync *time.Timer) bool {
	b := j.take(flush)
	if b.Phase == journal.Dead {
		return false
	}
	j.write(b)
	w := &j.w
	if len(b.texts) > 0 && w.err == nil && !w.textOpen {
		w.textOpen = true
		sync.Reset(textSync)
	}
	if w.syncing {
		return true
	}
	textDue := w.textOpen && (w.textDue || b.Phase != journal.Running) && w.err == nil
	if (w.written > b.Saved || textDue) && b.Err == nil {
		w.textOpen, w.textDue = false, false
		sync.Stop()
		w.syncing, w.syncSeq, w.syncSize = true, w.written, w.size
		go func() { j.synced <- j.file.Sync() }() // buffered: syncEnded may not take it
		return true
	}
	if w.err != nil && b.Err == nil {
		j.Fail(w.err)
	}
	return b.Phase == journal.Running
}

func (j *fileJournal) syncEnded(err error) {
	w := &j.w
	w.syncing = false
	if err == nil && w.err == nil && !j.checkUnchanged(batch{}) {
		j.Fail(w.err)
		return
	}
	if err == nil {
		w.safeSize = w.syncSize
		j.Commit(w.syncSeq)
		return
	}
	// After a failed sync it is unknown what is on the disk, and asking again may
	// answer "all is well" for pages that were thrown away.
	if w.err == nil {
		w.err = fmt.Errorf("sync journal: %w", err)
	}
	j.file.Truncate(w.safeSize)
	j.Fail(w.err)
}

// A batch is what is to be written at once.
type batch struct {
	journal.Status
	records []journal.Pending
	texts   []journal.ItemText
}

// take collects what is to be written.
func (j *fileJournal) take(timer *time.Timer) batch {
	b := batch{Status: j.Status()}
	if b.Phase == journal.Dead || b.Err != nil || j.w.err != nil {
		return b
	}
	b.records = j.Pending(j.w.written)
	if b.Untaken == 0 {
		return b
	}
	if !j.w.due && b.Untaken < flushBytes && b.Phase == journal.Running {
		if !j.w.armed {
			j.w.armed = true
			timer.Reset(flushEvery)
		}
		return b
	}

	b.texts = j.TakeText()
	j.w.due, j.w.armed = false, false
	timer.Stop()
	return b
}

// Lines are a batch in the form of the file.
type lines struct {
	buf     []byte
	starts  []int64 // where the texts begin
	offsets []int64 // where the records begin
	prev    uint32  // sum of the last record
}

// encode makes lines of a batch, open items before records.
func (j *fileJournal) encode(b batch, buf []byte) lines {
	w := &j.w
	l := lines{buf: buf, prev: w.prev}
	for _, p := range b.texts {
		l.starts = append(l.starts, w.size+int64(len(l.buf)))
		for _, pc := range p.Pieces {
			l.buf = format.AppendProgress(l.buf, p.Item.Name(), pc, format.Link{Of: j.of, Prev: w.prev})
		}
	}
	for i := range b.records {
		l.offsets = append(l.offsets, w.size+int64(len(l.buf)))
		l.buf, l.prev = format.AppendRecord(l.buf, &b.records[i], format.Link{Of: j.of, Prev: l.prev})
	}
	return l
}

// write appends a batch to the file, unless another program has changed it.
func (j *fileJournal) write(b batch) {
	if len(b.records) == 0 && len(b.texts) == 0 || !j.checkUnchanged(b) {
		return
	}
	w := &j.w
	l := j.encode(b, w.buf[:0])
	if cap(l.buf) <= 1<<20 {
		w.buf = l.buf
	}
	if _, err := j.file.Write(l.buf); err != nil {
		w.err = fmt.Errorf("write journal: %w", err)
		j.file.Truncate(w.size)
		return
	}

	for i, p := range b.texts {
		j.SetPlace(p.Item, journal.Place{Offset: l.starts[i], Next: w.written + 1})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, off := range l.offsets {
		j.index.Add(b.records[i].Seq, off)
		j.kinds[b.records[i].Kind] = off
	}
	w.size += int64(len(l.buf))
	w.written += uint64(len(b.records))
	w.prev = l.prev
}

// Old implements Backend.
func (j *fileJournal) Old(_ context.Context, after, upTo uint64, limit int) ([]journal.Record, error) {
	j.mu.Lock()
	from := j.index.Before(after + 1)
	j.mu.Unlock()
	recs, err := readRecords(j.file, j.of, from, after, upTo, limit)
	if !errors.Is(err, os.ErrClosed) {
		return recs, err
	}

	// Readers may finish after Close, which knows nothing of them.
	f, err := disk.Open(j.store.fs, j.path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("read closed journal: %w", err)
	}
	defer f.Close()
	return readRecords(f, j.of, from, after, upTo, limit)
}

// readRecords reads records after and up to the given numbers, from an offset
// before them. What has been damaged since the file was last checked is
// replaced, as a repair would: numbers have no gaps.
func readRecords(f File, of uint32, from int64, after, upTo uint64, limit int) ([]journal.Record, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var recs []journal.Record
	size := 0
	lose := func(before uint64, at time.Time) {
		for after+1 < before && len(recs) < limit {
			after++
			recs = append(recs, format.DamagedRecord(after, at, 0, ""))
		}
	}
	sc := format.NewScanner(f, of, from, st.Size())
	for after < upTo && len(recs) < limit && size < readBytes {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			lose(upTo+1, time.Time{})
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if sp.Kind != format.RecordLine || sp.Seq <= after {
			continue
		}
		r := sp.Decode()
		lose(min(sp.Seq, upTo+1), r.Time)
		if len(recs) < limit && sp.Seq == after+1 && sp.Seq <= upTo {
			recs = append(recs, r)
			after++
		}
		size += len(r.Body)
	}
	return recs, nil
}

// readBytes bounds how much of a file one read returns.
const readBytes = 1 << 20

// Recovery implements Journal.
func (j *fileJournal) Recovery() journal.Recovery { return j.recovery }

// Close implements Journal.
func (j *fileJournal) Close() error {
	j.Enter(journal.Closing)
	j.Appended()
	<-j.done
	return j.Failure()
}

// Abandon leaves the journal as a kill -9 would: nothing more is written, the
// lock is released, readers get ErrClosed. It is for tests of what comes after, and
// reports false if the journal is closed already.
func (j *fileJournal) Abandon() bool {
	alive := j.Kill()
	j.Appended()
	<-j.done
	return alive
}
