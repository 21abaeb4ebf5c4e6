package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A position is a place in the file between two lines.
type position struct {
	off  int64
	next uint64 // number of the first record behind it
}

// found is what reading a journal's file brought up.
type found struct {
	last     uint64
	size     int64 // of the file
	index    index
	open     map[string]position // where the first line of each open item is
	chunks   []journal.Chunk     // of those items
	recovery journal.Recovery
}

// recover opens the journal's file, which we have locked, and repairs it.
func (s *Store) recover(path string, lock *lockFile) (*fileJournal, error) {
	if err := s.adopt(path); err != nil {
		return nil, err
	}
	const flags = os.O_RDWR | os.O_APPEND
	f, err := s.fs.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	ck := s.loadCheckpoint(path, f)
	var rec journal.Recovery
	for range 4 { // each repair leaves less to do; one is enough, two if the checkpoint had to go
		fnd, clean, err := survey(f, ck)
		if err == nil && clean {
			if err := s.settle(path, f, fnd.size); err != nil {
				f.Close()
				return nil, err
			}
			fnd.recovery.Torn, fnd.recovery.Damaged = rec.Torn, rec.Damaged
			return s.start(path, f, lock, fnd), nil
		}
		if err == nil {
			err = s.repair(path, f, &ck, &rec)
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		if f, err = s.fs.OpenFile(path, flags, 0); err != nil {
			return nil, err
		}
	}
	f.Close()
	return nil, errors.New("repaired, but still damaged")
}

// settle makes durable what was found. A writer before us that was killed had
// written it, but may not have synced it, nor the name of the file: Create and
// repair sync the directory last.
func (s *Store) settle(path string, f File, size int64) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	if _, err := s.fs.Lstat(path + damagedSuffix); size > 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.fs.SyncDir(filepath.Dir(path))
}

// survey reads the file from where the checkpoint allows. It stops, and reports
// false, at the first thing that needs repair.
func survey(f File, ck checkpoint) (found, bool, error) {
	st, err := f.Stat()
	if err != nil {
		return found{}, false, err
	}
	fnd := found{size: st.Size(), index: ck.index, open: make(map[string]position)}
	next := ck.scan().next
	sc := newScanner(f, ck.scan().off, fnd.size)
	for {
		sp, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return found{}, false, fmt.Errorf("read journal: %w", err)
		}
		if sp.kind == badLine || !sp.ended || sp.kind == recordLine && sp.seq != next {
			return found{}, false, nil
		}
		if sp.kind == recordLine {
			fnd.index.add(sp.seq, sp.off)
			next++
		}
		fnd.note(&sp, next)
	}
	if next <= ck.Seq {
		return found{}, false, nil
	}
	fnd.last = next - 1
	fnd.recovery = journal.Recovery{Checkpoint: ck.state, CheckpointSeq: ck.Seq, Last: fnd.last}
	fnd.chunks, err = openChunks(f, fnd.open, fnd.size)
	return fnd, true, err
}

// note keeps track of which items are open.
func (fnd *found) note(sp *span, next uint64) {
	if sp.kind == progressLine {
		if _, ok := fnd.open[string(sp.item)]; !ok {
			fnd.open[string(sp.item)] = position{sp.off, next}
		}
		return
	}
	if len(sp.closes) == 0 || len(fnd.open) == 0 {
		return
	}
	pattern := unquote(sp.closes)
	for name := range fnd.open {
		if journal.Closes(pattern, unquote([]byte(name))) {
			delete(fnd.open, name)
		}
	}
}

// openChunks reads the text of open items, which only now are known to be open.
func openChunks(f io.ReaderAt, open map[string]position, size int64) ([]journal.Chunk, error) {
	if len(open) == 0 {
		return nil, nil
	}
	from := size
	for _, p := range open {
		from = min(from, p.off)
	}
	var chunks []journal.Chunk
	ends := make(map[string]int64)
	sc := newScanner(f, from, size)
	for {
		sp, err := sc.next()
		if errors.Is(err, io.EOF) {
			return chunks, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if sp.kind != progressLine {
			continue
		}
		if p, ok := open[string(sp.item)]; !ok || sp.off < p.off {
			continue
		}
		if c := sp.chunk(); c.Offset >= ends[c.Item] {
			chunks = append(chunks, c)
			ends[c.Item] = c.Offset + int64(len(c.Text))
		}
	}
}
