package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A fileView reads a journal's file beside its writer, if there is one. Lines
// that the writer has written and not yet synced are seen, once their batch is finished.
type fileView struct {
	store *Store
	id    string
	of    uint32 // sum of the conversation's id

	mu     sync.Mutex
	file   File
	path   string
	before []File // what was its file before it was replaced; others may read it
	index  index  // of what has been read of file
}

// Close implements View.
func (v *fileView) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.before {
		f.Close()
	}
	v.before = nil
	return v.file.Close()
}

// current returns the file.
func (v *fileView) current() File {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.file
}

// scan calls f for every span from an offset up to the end that the file has
// now, until f returns false.
func (v *fileView) scan(ctx context.Context, from int64, f func(*span) bool) error {
	file := v.current()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	sc := newScanner(file, v.of, from, st.Size())
	for {
		sp, err := sc.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		if !f(&sp) {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
}

// Read implements Reader.
func (v *fileView) Read(ctx context.Context, after uint64, limit int) ([]journal.Record, error) {
	st, err := v.current().Stat()
	if err != nil || limit <= 0 {
		return nil, err
	}
	v.mu.Lock()
	from := v.index.before(after + 1)
	v.mu.Unlock()

	var recs []journal.Record
	var passed index
	last, whole := uint64(0), uint64(0) // whole: the last record whose batch is finished
	err = v.scan(ctx, from, func(sp *span) bool {
		if sp.kind != recordLine || sp.seq <= last || implausible(sp.seq, st.Size()) {
			return true
		}
		last = sp.seq
		passed.add(sp.seq, sp.off)
		if sp.seq > after && len(recs) < limit {
			recs = append(recs, sp.decode())
		}
		if !sp.more {
			whole = sp.seq
		}
		return len(recs) < limit || sp.more
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range passed {
		if e.seq <= whole {
			v.index.add(e.seq, e.off)
		}
	}
	// An unfinished batch may be set aside, and its numbers given again.
	return slices.DeleteFunc(recs, func(r journal.Record) bool { return r.Seq > whole }), err
}

// tailBytes bounds what Tail reads of a file whose records are large.
const tailBytes = 1 << 20

// Tail implements View.
func (v *fileView) Tail(ctx context.Context, limit int) ([]journal.Record, error) {
	st, err := v.current().Stat()
	if err != nil || limit <= 0 {
		return nil, err
	}
	for size := int64(indexEvery); ; size *= 4 {
		from := max(st.Size()-size, 0)
		var recs []journal.Record
		err := v.scan(ctx, from, func(sp *span) bool {
			if sp.kind == recordLine && !implausible(sp.seq, st.Size()) &&
				(len(recs) == 0 || sp.seq > recs[len(recs)-1].Seq) {
				recs = append(recs, sp.decode())
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if len(recs) >= limit || from == 0 || size >= tailBytes && len(recs) > 0 {
			return recs[max(len(recs)-limit, 0):], nil
		}
	}
}

// Last implements View. The checkpoint knows the last record of each kind, so that
// only what was written after it has to be read.
func (v *fileView) Last(ctx context.Context, kind string) (journal.Record, bool, error) {
	file := v.current()
	ck := v.store.checkpointHead(v.path, file)
	if ck.Seq != 0 {
		rec, ok, err := v.lastAfter(ctx, kind, ck.Offset+ck.Size)
		if ok || err != nil {
			return rec, ok, err
		}
		off, known := ck.Kinds[kind]
		if !known {
			return rec, false, nil
		}
		if off >= 0 && off <= ck.Offset {
			return recordAt(file, v.of, off, kind)
		}
	}
	if has, err := v.has(kind); !has || err != nil {
		return journal.Record{}, false, err
	}
	return v.lastAfter(ctx, kind, 0)
}

// lastAfter reads from an offset to the end.
func (v *fileView) lastAfter(ctx context.Context, kind string, from int64) (last journal.Record, ok bool, err error) {
	err = v.scan(ctx, from, func(sp *span) bool {
		if sp.kind == recordLine && sp.seq > last.Seq && unquote(sp.name) == kind {
			last, ok = sp.decode(), true
		}
		return true
	})
	return last, ok, err
}

// recordAt reads the record whose line is there.
func recordAt(f File, of uint32, off int64, kind string) (journal.Record, bool, error) {
	st, err := f.Stat()
	if err != nil {
		return journal.Record{}, false, err
	}
	sp, err := newScanner(f, of, off, st.Size()).next()
	if err != nil || sp.kind != recordLine || unquote(sp.name) != kind {
		return journal.Record{}, false, err
	}
	return sp.decode(), true, nil
}

// has reports whether there may be a record of a kind. It looks for the letters as
// they stand in a record's line; in a text they would be quoted, so there they are
// not found.
func (v *fileView) has(kind string) (bool, error) {
	mark := []byte(`"kind":"` + kind + `"`)
	buf := make([]byte, readBytes)
	kept := 0 // bytes of the last piece, which may hold the beginning of the mark
	for at := int64(0); ; {
		n, err := v.current().ReadAt(buf[kept:], at)
		piece := buf[:kept+n]
		if bytes.Contains(piece, mark) {
			return true, nil
		}
		switch {
		case errors.Is(err, io.EOF) || n == 0:
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read journal: %w", err)
		}
		at += int64(n)
		kept = copy(buf, piece[max(0, len(piece)-len(mark)+1):])
	}
}

// OpenItems implements Reader.
func (v *fileView) OpenItems(ctx context.Context) ([]journal.Chunk, error) {
	fnd := found{open: make(map[string]position)}
	var next uint64
	var size int64
	err := v.scan(ctx, 0, func(sp *span) bool {
		if sp.kind == recordLine {
			next = sp.seq + 1
		}
		if sp.kind == recordLine || sp.kind == progressLine {
			fnd.note(sp, next)
		}
		size = sp.off + sp.size
		return true
	})
	if err != nil {
		return nil, err
	}
	chunks, err := openChunks(v.current(), v.of, fnd.open, size)
	return journal.JoinChunks(chunks), err
}

// Check implements View.
func (v *fileView) Check(ctx context.Context) ([]journal.Fault, error) {
	var wrong *MisplacedError
	if err := checkPlace(v.current(), v.id, v.path); errors.As(err, &wrong) {
		return []journal.Fault{{Text: "the file " + wrong.what()}}, nil
	}
	var faults []journal.Fault
	n, next, sum := 1, uint64(1), v.of
	var unfinished journal.Fault // the batch of the last record, if it is
	err := v.scan(ctx, 0, func(sp *span) bool {
		if text := fault(sp, next, sum); text != "" {
			faults = append(faults, journal.Fault{Line: n, Offset: sp.off, Text: text, AtEnd: !sp.ended})
		}
		if sp.kind == recordLine && sp.seq >= next {
			next, sum = sp.seq+1, sp.sumForNext()
			switch {
			case !sp.more:
				unfinished = journal.Fault{}
			case unfinished.Line == 0:
				unfinished = journal.Fault{Line: n, Offset: sp.off, Text: "unfinished batch of records", AtEnd: true}
			}
		}
		if sp.ended {
			n++
		}
		return true
	})
	if unfinished.Line > 0 && !slices.ContainsFunc(faults, func(f journal.Fault) bool { return f.Offset >= unfinished.Offset }) {
		faults = append(faults, unfinished)
	}
	return faults, err
}

// fault says what is wrong with a span, where the record of the given number is
// due, after one with the given sum. It returns nothing if all is well.
func fault(sp *span, next uint64, sum uint32) string {
	switch {
	case sp.kind == badLine && len(sp.data) > 0 && sp.data[0] == 0:
		return fmt.Sprintf("%d zero bytes", sp.size)
	case sp.kind == badLine && !sp.ended:
		return fmt.Sprintf("unfinished line of %d bytes", sp.size)
	case sp.kind == badLine:
		return fmt.Sprintf("damaged line of %d bytes", sp.size)
	case sp.kind == foreignLine:
		return "a line of another conversation"
	case !sp.ended:
		return "no line break at the end"
	case sp.kind == recordLine && sp.seq < next:
		return fmt.Sprintf("record %d again", sp.seq)
	case sp.kind == recordLine && sp.seq > next:
		return fmt.Sprintf("records %d to %d are missing", next, sp.seq-1)
	case sp.kind == recordLine && !sp.follows(next, sum):
		return fmt.Sprintf("record %d does not continue record %d", sp.seq, next-1)
	}
	return ""
}
