package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"

	"github.com/fermata-agent/fermata/internal/journal/file/disk"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
)

// A checkpoint lets Open begin near the end of the file. The zero value is no
// checkpoint: begin at the beginning.
//
// Its file is this as a line of JSON with a checksum of its own, the state, and a
// checksum of all. It is not synced: if it is lost, opening takes longer, nothing
// else.
type checkpoint struct {
	Seq    uint64 `json:"seq"`
	Offset int64  `json:"offset"` // of that record's line
	Size   int64  `json:"size"`   // of that line
	Sum    uint32 `json:"sum"`    // of that line
	// Items that were open may have begun before that line. Reading from here
	// on finds all of them.
	From     int64      `json:"from"`
	FromNext uint64     `json:"from_next"`
	Marks    [][2]int64 `json:"marks"` // the index
	// Kinds has the offset of the last record of each kind that there is; what is
	// behind Offset may have been lost since.
	Kinds map[string]int64 `json:"kinds"`
	Bytes int              `json:"bytes"` // of the state

	index format.Index
	state []byte // as given to Journal.Checkpoint
}

// scan returns where to begin to read the file of the conversation with that sum.
func (ck *checkpoint) scan(of uint32) position {
	if ck.Seq == 0 {
		return position{0, 1, of}
	}
	return position{ck.From, ck.FromNext, 0}
}

// Checkpoint implements Journal.
func (j *fileJournal) Checkpoint(ctx context.Context, seq uint64, state []byte) error {
	if err := j.MayCheckpoint(seq); err != nil {
		return err
	}
	select {
	case j.checkpointing <- struct{}{}: // one at a time: they share a temporary file
	case <-ctx.Done():
		return fmt.Errorf("checkpoint at record %d: %w", seq, context.Cause(ctx))
	}
	defer func() { <-j.checkpointing }()
	ck, err := j.checkpointAt(seq)
	if err != nil {
		return fmt.Errorf("checkpoint at record %d: %w", seq, err)
	}
	ck.state = state
	if err := j.store.saveCheckpoint(j.path, ck); err != nil {
		return fmt.Errorf("checkpoint at record %d: %w", seq, err)
	}
	return nil
}

// checkpointAt collects everything but the state.
func (j *fileJournal) checkpointAt(seq uint64) (checkpoint, error) {
	j.mu.Lock()
	ck := checkpoint{Seq: seq, index: j.index[:len(j.index):len(j.index)], Kinds: maps.Clone(j.kinds)}
	j.mu.Unlock()
	places := j.Places()

	sp, err := locate(j.file, j.of, seq, ck.index.Before(seq))
	if err != nil {
		return checkpoint{}, err
	}
	ck.Offset, ck.Size, ck.Sum = sp.Off, sp.Size, sp.Sum
	ck.From, ck.FromNext = sp.Off+sp.Size, seq+1
	for _, p := range places {
		if p.Offset < ck.From {
			ck.From, ck.FromNext = p.Offset, p.Next
		}
	}
	return ck, nil
}

var errNoRecord = errors.New("record not found in the file")

// locate finds the line of a record, from an offset on.
func locate(f File, of uint32, seq uint64, from int64) (format.Span, error) {
	st, err := f.Stat()
	if err != nil {
		return format.Span{}, err
	}
	sc := format.NewScanner(f, of, from, st.Size())
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return format.Span{}, errNoRecord
		}
		if err != nil {
			return format.Span{}, err
		}
		if sp.Kind == format.RecordLine && sp.Seq == seq {
			return sp, nil
		}
	}
}

func (s *Store) saveCheckpoint(path string, ck checkpoint) error {
	for _, e := range ck.index {
		if e.Seq <= ck.Seq { // the rest is found again on the way
			ck.Marks = append(ck.Marks, [2]int64{int64(e.Seq), e.Off})
		}
	}
	ck.Bytes = len(ck.state)
	b, err := json.Marshal(ck)
	if err != nil {
		return err
	}
	b = format.AppendHex(append(b, ' '), format.Checksum(b))
	b = append(append(b, '\n'), ck.state...)
	b = format.AppendHex(b, format.Checksum(b))

	temp := path + checkpointSuffix + tempSuffix
	f, err := disk.OpenBeside(s.fs, temp, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		s.fs.Remove(temp)
		return err
	}
	return s.fs.Rename(temp, path+checkpointSuffix)
}

// dropCheckpoint removes the checkpoint of a journal. A directory in its place may stay: it is never read.
func (s *Store) dropCheckpoint(path string) error {
	err := s.fs.Remove(path + checkpointSuffix)
	if st, lstatErr := s.fs.Lstat(path + checkpointSuffix); err == nil || errors.Is(lstatErr, fs.ErrNotExist) || lstatErr == nil && st.IsDir() {
		return nil
	}
	return err
}

// maxCheckpoint is more than any checkpoint has.
const maxCheckpoint = 1 << 30

// loadCheckpoint returns the checkpoint if it fits the journal's file, and none
// if there is any doubt.
func (s *Store) loadCheckpoint(path string, f File) checkpoint {
	b, err := disk.ReadFile(s.fs, path+checkpointSuffix, maxCheckpoint)
	if err != nil || len(b) < 8 {
		return checkpoint{}
	}
	b, sum := b[:len(b)-8], b[len(b)-8:]
	head, state, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !bytes.Equal(format.AppendHex(nil, format.Checksum(b)), sum) {
		return checkpoint{}
	}
	ck, ok := parseHead(head)
	if !ok || len(state) != ck.Bytes || !ck.fits(f) {
		return checkpoint{}
	}
	last := format.IndexEntry{Off: -1}
	for _, m := range ck.Marks {
		e := format.IndexEntry{Seq: uint64(m[0]), Off: m[1]}
		if e.Seq <= last.Seq || e.Off <= last.Off || e.Seq > ck.Seq || e.Off > ck.Offset {
			return checkpoint{}
		}
		ck.index = append(ck.index, e)
		last = e
	}
	ck.state = state
	return ck
}

// parseHead takes the first line of a checkpoint apart. Those of earlier versions,
// which know nothing of kinds, are not taken.
func parseHead(line []byte) (ck checkpoint, ok bool) {
	n := len(line) - 9
	if n < 0 || line[n] != ' ' || !bytes.Equal(format.AppendHex(nil, format.Checksum(line[:n])), line[n+1:]) {
		return checkpoint{}, false
	}
	err := json.Unmarshal(line[:n], &ck)
	return ck, err == nil && ck.Kinds != nil
}

// checkpointHead returns a checkpoint without its state and index, which are not
// read, or the zero value if it does not fit.
func (s *Store) checkpointHead(path string, f File) checkpoint {
	c, err := s.fs.OpenFile(path+checkpointSuffix, os.O_RDONLY, 0)
	if err != nil {
		return checkpoint{}
	}
	defer c.Close()
	line, err := bufio.NewReaderSize(io.NewSectionReader(c, 0, maxCheckpoint), 32<<10).ReadBytes('\n')
	if err != nil {
		return checkpoint{}
	}
	ck, ok := parseHead(bytes.TrimSuffix(line, []byte("\n")))
	if !ok || !ck.fits(f) {
		return checkpoint{}
	}
	return ck
}

// fits reports whether the record's line is where it was.
func (ck *checkpoint) fits(f File) bool {
	st, err := f.Stat()
	if err != nil || ck.Seq == 0 || ck.Size <= 0 || ck.Offset < 0 || ck.Offset+ck.Size > st.Size() {
		return false
	}
	if ck.From < 0 || ck.From > ck.Offset+ck.Size || ck.FromNext == 0 || ck.FromNext > ck.Seq+1 {
		return false
	}
	b := make([]byte, ck.Size)
	if _, err := f.ReadAt(b, ck.Offset); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	l := format.ParseLine(bytes.TrimSuffix(b, []byte("\n")))
	return l.Kind == format.RecordLine && l.Seq == ck.Seq && l.Sum == ck.Sum
}
