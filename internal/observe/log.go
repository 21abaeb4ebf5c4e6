package observe

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/fermata-agent/fermata/internal/regular"
)

// ParseLevel reads the name of a level.
func ParseLevel(name string) (slog.Level, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[name]
	if !ok {
		return 0, fmt.Errorf("there is no level %q; there are debug, info, warn, error", name)
	}
	return level, nil
}

// NewLog returns a log of lines of JSON from a level on.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// How large a file of a log may become, and how many older ones are kept.
const (
	maxFile  = 10 << 20
	keepOld  = 3
	fileMode = 0o600
)

// A File is a log file that is rotated: when it would become too large, it is renamed to a name that ends in .1, the one before to .2, and so on. A line
// is in one file. What cannot be written is lost, and the program goes on.
type File struct {
	name string
	max  int64

	mu   sync.Mutex
	file *os.File // nil if it could not be opened again; guarded by mu, as what follows
	size int64
}

// OpenFile opens a log file, and adds to one that is there.
func OpenFile(name string) (*File, error) {
	f := &File{name: name, max: maxFile}
	return f, f.open()
}

func (f *File) open() error {
	file, err := regular.OpenFile(f.name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write writes a line.
func (f *File) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil && f.size > 0 && f.size+int64(len(line)) > f.max {
		f.rotate()
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// rotate renames the file and those before it.
func (f *File) rotate() {
	f.file.Close()
	f.file = nil
	for i := keepOld; i > 1; i-- {
		_ = os.Rename(f.old(i-1), f.old(i)) // there may be none
	}
	_ = os.Rename(f.name, f.old(1)) // else it is added to
}

func (f *File) old(i int) string { return fmt.Sprintf("%s.%d", f.name, i) }

// Close closes the file. It returns fs.ErrClosed the second time.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return fs.ErrClosed
	}
	err := f.file.Close()
	f.file = nil
	return err
}
