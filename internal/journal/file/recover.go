package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
)

// A position is a place in the file between two lines.
type position struct {
	off  int64
	next uint64 // number of the first record behind it
	sum  uint32 // of the record before it; 0 if it is not known
}

// found is what reading a journal's file has found.
type found struct {
	of       uint32 // sum of the conversation's id
	last     uint64
	sum      uint32 // of the last record, or of if there is none
	size     int64  // of the file
	index    format.Index
	kinds    map[string]int64    // offset of the last record of each kind; -1 if it is not known
	open     map[string]position // where the first line of each open item is
	chunks   []journal.Chunk     // of those items
	recovery journal.Recovery
}

// recover repairs the journal's file, which we have locked, and starts to write
// to it. If it fails, the file is closed.
func (s *Store) recover(h held) (*fileJournal, error) {
	j, err := s.recoverFile(&h)
	if err != nil {
		h.file.Close()
		return nil, err
	}
	return j, nil
}

func (s *Store) recoverFile(h *held) (*fileJournal, error) {
	if err := s.adopt(h.path); err != nil {
		return nil, err
	}
	if err := checkPlace(h.file, h.id, h.path); err != nil {
		return nil, err
	}
	of := format.IDSum(h.id)
	ck := s.loadCheckpoint(h.path, h.file)
	var rec journal.Recovery
	for range 4 + maxRescued { // each repair leaves less to do; one is enough, two if the checkpoint had to go
		fnd, clean, err := survey(h.file, of, ck)
		if err != nil {
			return nil, err
		}
		if !clean {
			if err := s.repair(h, &ck, &rec); err != nil {
				return nil, err
			}
			continue
		}
		grown, err := s.merge(h, fnd)
		if err != nil {
			return nil, err
		}
		if grown {
			continue
		}
		if err := s.settle(h.path, h.file, fnd.size); err != nil {
			return nil, err
		}
		fnd.recovery.Torn, fnd.recovery.Damaged = rec.Torn, rec.Damaged
		return s.start(h, fnd), nil
	}
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
func survey(f File, of uint32, ck checkpoint) (found, bool, error) {
	st, err := f.Stat()
	if err != nil {
		return found{}, false, err
	}
	from := ck.scan(of)
	fnd := found{of: of, sum: from.sum, size: st.Size(), index: ck.index, open: make(map[string]position)}
	kinds := kindOffsets{}
	for kind, off := range ck.Kinds {
		if off > ck.Offset {
			off = -1
		}
		kinds.set([]byte(kind), off)
	}
	next, unfinished := from.next, false // unfinished: the batch of the last record
	sc := format.NewScanner(f, of, from.off, fnd.size)
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return found{}, false, fmt.Errorf("read journal: %w", err)
		}
		if sp.Kind == format.BadLine || sp.Kind == format.ForeignLine || !sp.Ended || sp.Kind == format.RecordLine && !sp.Follows(next, fnd.sum) {
			return found{}, false, nil
		}
		if sp.Kind == format.RecordLine {
			fnd.index.Add(sp.Seq, sp.Off)
			kinds.set(sp.Name, sp.Off)
			fnd.sum = sp.SumForNext()
			unfinished = sp.More
			next++
		}
		fnd.note(&sp, next)
	}
	if next <= ck.Seq || unfinished {
		return found{}, false, nil
	}
	fnd.last = next - 1
	fnd.kinds = kinds.plain()
	if fnd.sum == 0 && fnd.last == ck.Seq {
		fnd.sum = ck.Sum
	}
	fnd.recovery = journal.Recovery{Checkpoint: ck.state, CheckpointSeq: ck.Seq, Last: fnd.last}
	fnd.chunks, err = openChunks(f, of, fnd.open, fnd.size)
	return fnd, true, err
}

// kindOffsets is a map that costs nothing for a kind that is known.
type kindOffsets map[string]*int64

func (k kindOffsets) set(kind []byte, off int64) {
	if p := k[string(kind)]; p != nil {
		*p = off
		return
	}
	k[string(kind)] = &off
}

func (k kindOffsets) plain() map[string]int64 {
	m := make(map[string]int64, len(k))
	for kind, off := range k {
		m[format.Unquote([]byte(kind))] = *off
	}
	return m
}

// note keeps track of which items are open.
func (fnd *found) note(sp *format.Span, next uint64) {
	if sp.Kind == format.ProgressLine {
		if _, ok := fnd.open[string(sp.Item)]; !ok {
			fnd.open[string(sp.Item)] = position{off: sp.Off, next: next}
		}
		return
	}
	if len(sp.Closes) == 0 || len(fnd.open) == 0 {
		return
	}
	pattern := format.Unquote(sp.Closes)
	for name := range fnd.open {
		if journal.Closes(pattern, format.Unquote([]byte(name))) {
			delete(fnd.open, name)
		}
	}
}

// openChunks reads the text of open items, which only now are known to be open.
func openChunks(f io.ReaderAt, of uint32, open map[string]position, size int64) ([]journal.Chunk, error) {
	if len(open) == 0 {
		return nil, nil
	}
	from := size
	for _, p := range open {
		from = min(from, p.off)
	}
	var chunks []journal.Chunk
	ends := make(map[string]int64)
	sc := format.NewScanner(f, of, from, size)
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return chunks, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if sp.Kind != format.ProgressLine {
			continue
		}
		if p, ok := open[string(sp.Item)]; !ok || sp.Off < p.off {
			continue
		}
		if c := sp.Chunk(); c.Offset >= ends[c.Item] {
			chunks = append(chunks, c)
			ends[c.Item] = c.Offset + int64(len(c.Text))
		}
	}
}
