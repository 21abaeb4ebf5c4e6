// Package secrets is the one registry of what commands must not reach: the files
// that hold secrets of fermata (keys, tokens, certificates' keys, sockets), and the
// addresses of servers that do what their clients ask for.
//
// A registry belongs to a home directory, and all processes that use the home share
// it: a command of one process must not read the token file of another. Some names
// in the home are always secret (see Names). For every other file there is an entry in
// <home>/run/secrets, which is made before the file is first read. Home.Read does
// both, and is how every secret file is read.
//
// Each entry is a file that its process holds a lock on. What a crash leaves behind is
// therefore told from what is in use: an address is forgotten with its process, a file
// a week later, because its secret is often used again.
//
// The sandbox and the tools that look at files ask Home.Files; the supervisors of
// commands ask Home.Refuses. This package does not import net, which supervisors
// do not need otherwise.
package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/regular"
)

// Home is the registry of a home directory. The empty Home has no entries, and none are
// made in it.
type Home string

// Dirs are the directories of a home that are always secret. A directory stays hidden
// from a command when something in it is replaced, so new secrets belong here.
var Dirs = []string{"run", "keys"}

// Names lists all that is always secret in a home: keys, tokens, and the sockets of
// running processes, by which a command could approve itself.
func (h Home) Names() []string {
	if h == "" {
		return nil
	}
	var list []string
	for _, name := range append(slices.Clone(Dirs), "providers", ".env", "auth.json", ".credentials.json", "app-server", "web.json", "web-cert.pem") {
		list = append(list, filepath.Join(string(h), name))
	}
	return list
}

// Dir is the directory of the entries.
func (h Home) Dir() string { return filepath.Join(string(h), "run", "secrets") }

// Read registers a file as secret, and then reads it. It is for files of a fixed name, which are regular ones: a pipe or a device
// in the place of one is an error. For a file that the user names, see File.
func (h Home) Read(name string) ([]byte, error) {
	if err := h.Register(name); err != nil {
		return nil, err
	}
	return regular.ReadFile(name)
}

// Register makes a file secret, by its name and by the one that symbolic links lead to. It
// does not need to exist. Pipes and devices are not registered: they are read once.
func (h Home) Register(name string) error {
	if h == "" {
		return nil
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return fmt.Errorf("register the secret file: %w", err)
	}
	info, statErr := os.Lstat(name)
	if h.always(name) && (statErr != nil || info.Mode()&fs.ModeSymlink == 0) {
		return nil
	}
	names := []string{name}
	if real, err := filepath.EvalSymlinks(name); err == nil && real != name {
		names = append(names, real)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeSocket == 0 {
		return nil
	}
	for _, n := range names {
		if h.always(n) {
			continue
		}
		if err := h.hold(n); err != nil {
			return fmt.Errorf("register the secret file %s: %w", name, err)
		}
	}
	return nil
}

// RegisterDir makes a directory that exists secret, with everything that is or comes to be in it.
func (h Home) RegisterDir(name string) error {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		err = h.hold(real)
	}
	if err != nil {
		return fmt.Errorf("register the secret directory %s: %w", name, err)
	}
	return nil
}

// always reports whether a name is secret without an entry.
func (h Home) always(name string) bool {
	return slices.ContainsFunc(h.Names(), func(n string) bool { return within(name, n) })
}

// The beginnings of the names of entries.
const (
	filePrefix    = "file-"
	addressPrefix = "address-"
)

// held has the entries that this process holds, by their names.
var held sync.Map

// hold makes the entry of a file, or renews it, and holds it until this process ends.
func (h Home) hold(name string) error {
	sum := sha256.Sum256([]byte(name))
	entry := filepath.Join(h.Dir(), filePrefix+hex.EncodeToString(sum[:16]))
	if _, again := held.LoadOrStore(entry, true); again {
		return nil
	}
	err := os.MkdirAll(h.Dir(), 0o700)
	for err == nil {
		var kept bool
		if kept, err = holdEntry(entry, name); kept || err != nil {
			break
		}
	}
	if err != nil {
		held.Delete(entry)
		return err
	}
	h.prune(maxFiles)
	return nil
}

// holdEntry writes an entry and locks it; the descriptor is closed by the end of this process. It
// reports whether the entry is there: another process may have removed it before it was locked.
func holdEntry(entry, name string) (kept bool, err error) {
	fd, err := openEntry(entry, unix.O_CREAT)
	if err != nil {
		return false, err
	}
	defer func() {
		if !kept {
			_ = unix.Close(fd)
		}
	}()
	if err := lock(fd, unix.LOCK_SH); err != nil {
		return false, err
	}
	if _, err := unix.Pwrite(fd, []byte(name), 0); err != nil { // the same bytes, whoever writes them
		return false, err
	}
	if err := unix.Ftruncate(fd, int64(len(name))); err != nil { // with anything behind it, it would be another name
		return false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	if st.Nlink == 0 {
		return false, nil
	}
	now := time.Now()
	return true, os.Chtimes(entry, now, now)
}

// openEntry opens an entry, which is a regular file: a lock on anything else would be shared with strangers, and a name that is
// written to a pipe or a device is not registered.
func openEntry(entry string, flag int) (fd int, err error) {
	fd, err = unix.Open(entry, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW|flag, 0o600)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: entry, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = regular.ErrNotRegular
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, &fs.PathError{Op: "open", Path: entry, Err: err}
	}
	return fd, nil
}

func lock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}

// How long the entry of a file stays after its last process, and how many there are.
const (
	keepFiles = 7 * 24 * time.Hour
	maxFiles  = 1000
)

// prune removes the entries of files that were not used for a week, and the oldest ones
// if there are more than most. Those that a process holds stay.
func (h Home) prune(most int) {
	type aged struct {
		name string
		used time.Time
	}
	var list []aged
	entries, _ := regular.ReadDir(h.Dir()) // what cannot be read stays
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		name := filepath.Join(h.Dir(), e.Name())
		switch {
		case strings.HasPrefix(e.Name(), filePrefix):
			list = append(list, aged{name, info.ModTime()})
		case time.Since(info.ModTime()) > keepFiles:
			removeUnheld(name)
		}
	}
	slices.SortFunc(list, func(a, b aged) int { return b.used.Compare(a.used) })
	for i, e := range list {
		if i >= most || time.Since(e.used) > keepFiles {
			removeUnheld(e.name)
		}
	}
}

// removeUnheld removes an entry unless a process holds it.
func removeUnheld(entry string) {
	fd, err := openEntry(entry, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if lock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.Remove(entry)
	}
}

// Files lists what is secret: the names in the home, and the files with an entry.
func (h Home) Files() []string {
	if h == "" {
		return nil
	}
	return append(h.Names(), h.Registered()...)
}

// Among reports whether a real path is one of the names, lies in one, or is another name of the same file.
func Among(real string, names []string) bool {
	info, err := os.Stat(real)
	for _, name := range names {
		if within(real, name) {
			return true
		}
		if name, err := filepath.EvalSymlinks(name); err == nil && within(real, name) {
			return true
		}
		if other, otherErr := os.Stat(name); err == nil && otherErr == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}

// within reports whether name is dir or lies in it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// A listing is what a directory of entries held when it was last changed.
type listing struct {
	changed time.Time
	files   []string
}

// listings has the last listing of each directory: who looks at a whole tree asks for
// each file in it.
var listings sync.Map

// Registered lists the files that have an entry.
func (h Home) Registered() []string {
	dir := h.Dir()
	info, err := os.Stat(dir)
	if h == "" || err != nil {
		return nil
	}
	changed := info.ModTime()
	if last, ok := listings.Load(dir); ok && last.(listing).changed.Equal(changed) {
		return last.(listing).files
	}
	var files []string
	whole := true
	entries, _ := regular.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filePrefix) {
			continue
		}
		name, err := readName(filepath.Join(dir, e.Name()))
		switch {
		case len(name) > 0:
			files = append(files, string(name))
		case !errors.Is(err, fs.ErrNotExist): // it is being written
			whole = false
		}
	}
	if whole && time.Since(changed) > coarsest {
		listings.Store(dir, listing{changed, files})
	}
	return files
}

// maxName is longer than any name of a file.
const maxName = 64 << 10

// readName reads the name in an entry. What is longer than a name is none.
func readName(entry string) ([]byte, error) {
	f, err := regular.Open(entry)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	name, err := io.ReadAll(io.LimitReader(f, maxName+1))
	if len(name) > maxName {
		return nil, regular.ErrTooLarge
	}
	return name, err
}

// coarsest is how far apart two changes may be that leave the same time of change.
const coarsest = 2 * time.Second
