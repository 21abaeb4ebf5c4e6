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
	"github.com/fermata-agent/fermata/internal/journal/file/format"
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
	before []File       // what was its file before it was replaced; others may read it
	index  format.Index // of what has been read of file
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
func (v *fileView) scan(ctx context.Context, from int64, f func(*format.Span) bool) error {
	file := v.current()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	sc := format.NewScanner(file, v.of, from, st.Size())
	for {
		sp, err := sc.Next()
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
	from := v.index.Before(after + 1)
	v.mu.Unlock()

	var recs []journal.Record
	var passed format.Index
	last, whole := uint64(0), uint64(0) // whole: the last record whose batch is finished
	err = v.scan(ctx, from, func(sp *format.Span) bool {
		if sp.Kind != format.RecordLine || sp.Seq <= last || implausible(sp.Seq, st.Size()) {
			return true
		}
		last = sp.Seq
		passed.Add(sp.Seq, sp.Off)
		if sp.Seq > after && len(recs) < limit {
			recs = append(recs, sp.Decode())
		}
		if !sp.More {
			whole = sp.Seq
		}
		return len(recs) < limit || sp.More
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range passed {
		if e.Seq <= whole {
			v.index.Add(e.Seq, e.Off)
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
	for size := int64(format.IndexEvery); ; size *= 4 {
		from := max(st.Size()-size, 0)
		var recs []journal.Record
		err := v.scan(ctx, from, func(sp *format.Span) bool {
			if sp.Kind == format.RecordLine && !implausible(sp.Seq, st.Size()) &&
				(len(recs) == 0 || sp.Seq > recs[len(recs)-1].Seq) {
				recs = append(recs, sp.Decode())
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
	err = v.scan(ctx, from, func(sp *format.Span) bool {
		if sp.Kind == format.RecordLine && sp.Seq > last.Seq && format.Unquote(sp.Name) == kind {
			last, ok = sp.Decode(), true
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
	sp, err := format.NewScanner(f, of, off, st.Size()).Next()
	if err != nil || sp.Kind != format.RecordLine || format.Unquote(sp.Name) != kind {
		return journal.Record{}, false, err
	}
	return sp.Decode(), true, nil
}

// has reports whether there may be a record of a kind. It looks for the letters as
// they stand in a record's line; in a text they would be quoted, so there they are
// not found.
func (v *fileView) has(kind string) (bool, error) {
	mark := []byte(`"kind":"` + kind + `"`)
	st, err := v.current().Stat()
	if err != nil {
		return false, err
	}
	buf := make([]byte, min(readBytes, st.Size()+1)) // one more, to see the end
	kept := 0                                        // bytes of the last piece, which may hold the beginning of the mark
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
	err := v.scan(ctx, 0, func(sp *format.Span) bool {
		if sp.Kind == format.RecordLine {
			next = sp.Seq + 1
		}
		if sp.Kind == format.RecordLine || sp.Kind == format.ProgressLine {
			fnd.note(sp, next)
		}
		size = sp.Off + sp.Size
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
	err := v.scan(ctx, 0, func(sp *format.Span) bool {
		if text := fault(sp, next, sum); text != "" {
			faults = append(faults, journal.Fault{Line: n, Offset: sp.Off, Text: text, AtEnd: !sp.Ended})
		}
		if sp.Kind == format.RecordLine && sp.Seq >= next {
			next, sum = sp.Seq+1, sp.SumForNext()
			switch {
			case !sp.More:
				unfinished = journal.Fault{}
			case unfinished.Line == 0:
				unfinished = journal.Fault{Line: n, Offset: sp.Off, Text: "unfinished batch of records", AtEnd: true}
			}
		}
		if sp.Ended {
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
func fault(sp *format.Span, next uint64, sum uint32) string {
	switch {
	case sp.Kind == format.BadLine && len(sp.Data) > 0 && sp.Data[0] == 0:
		return fmt.Sprintf("%d zero bytes", sp.Size)
	case sp.Kind == format.BadLine && !sp.Ended:
		return fmt.Sprintf("unfinished line of %d bytes", sp.Size)
	case sp.Kind == format.BadLine:
		return fmt.Sprintf("damaged line of %d bytes", sp.Size)
	case sp.Kind == format.ForeignLine:
		return "a line of another conversation"
	case !sp.Ended:
		return "no line break at the end"
	case sp.Kind == format.RecordLine && sp.Seq < next:
		return fmt.Sprintf("record %d again", sp.Seq)
	case sp.Kind == format.RecordLine && sp.Seq > next:
		return fmt.Sprintf("records %d to %d are missing", next, sp.Seq-1)
	case sp.Kind == format.RecordLine && !sp.Follows(next, sum):
		return fmt.Sprintf("record %d does not continue record %d", sp.Seq, next-1)
	}
	return ""
}
