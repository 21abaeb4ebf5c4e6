package file

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/disk"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
)

// followBatch bounds how many records one Next returns.
const followBatch = 256

// A follower reads a journal's file as another process writes it. It looks again
// and again, but reads each line once.
type follower struct {
	view  *fileView
	after uint64
	off   int64                      // behind the last whole line that was read
	text  map[string][]journal.Chunk // what was read of open items and not yet returned
	items []string                   // their names, in the order in which they began
	given map[string]int64           // how much was read of each open item
}

// Follow implements Reader.
func (v *fileView) Follow(after uint64) journal.Follower {
	return &follower{view: v, after: after, text: make(map[string][]journal.Chunk), given: make(map[string]int64)}
}

// Next implements Follower.
func (f *follower) Next(ctx context.Context) ([]journal.Record, []journal.Chunk, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		recs, err := f.read(ctx)
		if err != nil {
			return nil, nil, err
		}
		if len(recs) > 0 {
			return recs, nil, nil
		}
		if chunks := f.chunks(); len(chunks) > 0 {
			return nil, chunks, nil
		}

		select {
		case <-time.After(journal.PollEvery):
		case <-ctx.Done():
		}
	}
}

// read reads the lines that are new, until there are enough records.
func (f *follower) read(ctx context.Context) ([]journal.Record, error) {
	file, replaced, err := f.view.refresh(ctx)
	if err != nil {
		return nil, err
	}
	if replaced {
		f.off = 0 // by a repair; what was returned is not returned again
	}
	st, err := file.Stat()
	if err != nil || st.Size() <= f.off {
		return nil, err
	}
	var recs []journal.Record
	var batch []followed // lines that are of no use before their batch is finished
	sc := format.NewScanner(file, f.view.of, f.off, st.Size())
	for len(recs) < followBatch {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		end := sp.Off + sp.Size
		if !sp.Ended && end == st.Size() {
			break // its writer is not done with it
		}
		batch = append(batch, f.line(&sp, st.Size()))
		if sp.Kind == format.RecordLine && sp.More || sp.Kind != format.RecordLine && len(batch) > 1 {
			continue
		}
		recs = f.take(recs, batch)
		batch, f.off = batch[:0], end
	}
	return recs, context.Cause(ctx)
}

// A followed is a line that was read.
type followed struct {
	record journal.Record // Seq is 0 if it is none that is new
	closes string
	chunk  journal.Chunk // without an item if it is none
}

func (f *follower) line(sp *format.Span, size int64) (l followed) {
	switch {
	case sp.Kind == format.RecordLine:
		l.closes = format.Unquote(sp.Closes)
		if sp.Seq > f.after && !implausible(sp.Seq, size) {
			l.record = sp.Decode()
		}
	case sp.Kind == format.ProgressLine:
		l.chunk = sp.Chunk()
	}
	return l
}

// take adds new records to recs, and takes the text.
func (f *follower) take(recs []journal.Record, lines []followed) []journal.Record {
	for _, l := range lines {
		f.close(l.closes)
		if l.record.Seq > f.after {
			f.after = l.record.Seq
			recs = append(recs, l.record)
		}
		if l.chunk.Item != "" {
			f.add(l.chunk)
		}
	}
	return recs
}

// add takes what is new of a chunk.
func (f *follower) add(c journal.Chunk) {
	end := c.Offset + int64(len(c.Text))
	given, known := f.given[c.Item]
	if end <= given {
		return
	}
	if skip := given - c.Offset; skip > 0 {
		c.Offset, c.Text = given, c.Text[skip:]
	}
	if !known {
		f.items = append(f.items, c.Item)
	}
	f.given[c.Item] = end
	f.text[c.Item] = append(f.text[c.Item], c)
}

// close forgets the items that a record closes.
func (f *follower) close(pattern string) {
	if pattern == "" {
		return
	}
	f.items = slices.DeleteFunc(f.items, func(name string) bool {
		closed := journal.Closes(pattern, name)
		if closed {
			delete(f.given, name)
			delete(f.text, name)
		}
		return closed
	})
}

// chunks returns what was read of open items.
func (f *follower) chunks() []journal.Chunk {
	var all []journal.Chunk
	for _, name := range f.items {
		for _, c := range f.text[name] {
			if n := len(all); n > 0 && all[n-1].Item == c.Item && all[n-1].Tag == c.Tag && all[n-1].Offset+int64(len(all[n-1].Text)) == c.Offset {
				all[n-1].Text += c.Text
				continue
			}
			all = append(all, c)
		}
	}
	clear(f.text)
	return all
}

// refresh returns the file that is now the conversation's, and whether it is
// another one than before: a repair replaces it, archiving moves it.
func (v *fileView) refresh(ctx context.Context) (File, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if disk.IsAt(v.store.fs, v.file, v.path) {
		return v.file, false, nil
	}
	path, err := v.store.find(ctx, v.id)
	if err != nil {
		return nil, false, err
	}
	f, err := disk.Open(v.store.fs, path, os.O_RDONLY, 0)
	if err != nil {
		return nil, false, err
	}
	before, _ := v.file.Stat()
	now, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, false, err
	}
	replaced := before == nil || !v.store.fs.SameFile(before, now)
	v.before = append(v.before, v.file)
	v.file, v.path = f, path
	if replaced {
		v.index = nil
	}
	return f, replaced, nil
}
