package composer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/regular"
)

// A HistoryFile is a file of JSON lines to which any number of processes append, each
// line with one write under a lock. When the file has grown too long the oldest
// lines are left out; nothing else is ever changed in it, also not lines that
// cannot be read.
type HistoryFile struct {
	path     string
	maxBytes int64 // beyond this the older half goes
	maxEntry int
	maxLoad  int
}

type historyEntry struct {
	Time int64  `json:"ts"` // seconds since 1970
	Text string `json:"text"`
}

// NewHistoryFile returns the history at path. Nothing is touched yet; the file is
// made, readable by its owner only, by the first Add.
func NewHistoryFile(path string) *HistoryFile {
	return &HistoryFile{path: path, maxBytes: 8 << 20, maxEntry: 1 << 20, maxLoad: 10_000}
}

// Limit sets how long the file may grow; 0 leaves it to us.
func (h *HistoryFile) Limit(maxBytes int64) *HistoryFile {
	if maxBytes > 0 {
		h.maxBytes = maxBytes
	}
	return h
}

// Load returns the newest entries, at most 10,000, the oldest of them first. A
// missing file is an empty history; a line that cannot be read is left out.
func (h *HistoryFile) Load() ([]string, error) {
	data, err := h.tail()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	var texts []string
	for line := range bytes.Lines(data) {
		var e historyEntry
		if json.Unmarshal(line, &e) == nil && e.Text != "" {
			texts = append(texts, e.Text)
		}
	}
	return texts[max(len(texts)-h.maxLoad, 0):], nil
}

// tail reads the end of the file, as much as it should ever hold.
func (h *HistoryFile) tail() ([]byte, error) {
	f, err := regular.Open(h.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	limit := h.maxBytes + 2*int64(h.maxEntry)
	if over := info.Size() - limit; over > 0 {
		if _, err := f.Seek(over, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// Add appends an entry. One of more than a megabyte is not kept. It waits while
// another process appends.
func (h *HistoryFile) Add(text string) error {
	if text == "" || len(text) > h.maxEntry {
		return nil
	}
	line, err := json.Marshal(historyEntry{time.Now().Unix(), text})
	if err != nil {
		return fmt.Errorf("encode history entry: %w", err)
	}
	f, err := h.open()
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	err = h.append(f, line)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("write history: %w", closeErr)
	}
	return err
}

// openTries is how often open follows a file that is replaced.
const openTries = 1000

// open returns the file that is at the path, locked. Closing it unlocks it.
func (h *HistoryFile) open() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return nil, err
	}
	for range openTries {
		f, err := regular.OpenFile(h.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lockFile(f, 0); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", h.path, err)
		}
		if isAt(f, h.path) {
			return f, nil
		}
		f.Close() // another process shortened it meanwhile: that was the old one
	}
	return nil, fmt.Errorf("%s was replaced %d times meanwhile", h.path, openTries)
}

// lock locks a file for as long as it is open. With LOCK_NB it fails if another process has it.
func lockFile(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|how)
			if lockErr != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, lockErr)
}

func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// append writes a line behind the last whole one, and shortens the file if that
// made it too long.
func (h *HistoryFile) append(f *os.File, line []byte) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	size := info.Size()
	line = append(line, '\n')
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
		if last[0] != '\n' { // a write was cut off; it must not spoil this one
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(line); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	if size+int64(len(line)) <= h.maxBytes {
		return nil
	}
	if err := h.shorten(); err != nil {
		return fmt.Errorf("shorten history: %w", err)
	}
	return nil
}

// shorten puts a file with the newer half in the place of the locked one, all at once.
func (h *HistoryFile) shorten() error {
	target, err := filepath.EvalSymlinks(h.path)
	if err != nil {
		return err
	}
	data, err := h.tail() // more than stays, and not all of a file that is damaged
	if err != nil {
		return err
	}
	data = newestLines(data, int(h.maxBytes/2))
	tmp, err := os.CreateTemp(filepath.Dir(target), ".history-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), target)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// newest returns the last whole lines of data, as many as there is room for but
// at least one.
func newestLines(data []byte, room int) []byte {
	over := len(data) - room
	if over <= 0 {
		return data
	}
	start := over + bytes.IndexByte(data[over-1:], '\n') // behind a newline
	if start < over || start == len(data) {
		start = bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	}
	return data[start:]
}
