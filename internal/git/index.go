package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errUncommon means that a file of a repository has a form that only git reads.
var errUncommon = errors.New("a form that only git reads")

// An index is what git knows of the files that are tracked.
type index struct {
	entries []indexEntry
	names   map[string]bool
	tree    string    // the tree that it is equal to, if git has noted one
	time    time.Time // when it was written
}

type indexEntry struct {
	name         string
	hash         []byte
	mode, inode  uint32
	size         uint32
	ctime, mtime [2]uint32 // seconds and nanoseconds
	stage        int       // not 0 while a merge is unresolved
	special      bool      // git is set to assume something other than what is there
}

const (
	indexMax  = 4 << 20
	hashSize  = 20
	entrySize = 40 + hashSize + 2
)

// readIndex reads an index in the form that git writes by default.
// Without a file nothing is tracked.
func readIndex(name string) (index, error) {
	ix := index{names: map[string]bool{}}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return ix, nil
	}
	if err != nil {
		return ix, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > indexMax {
		return ix, errUncommon
	}
	ix.time = info.ModTime()
	data, err := io.ReadAll(io.LimitReader(f, indexMax))
	if err != nil {
		return ix, err
	}
	return ix, ix.parse(data)
}

func (ix *index) parse(data []byte) error {
	if len(data) < 12+hashSize || string(data[:4]) != "DIRC" {
		return errUncommon
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version != 2 && version != 3 {
		return errUncommon
	}
	rest := data[12 : len(data)-hashSize]
	for range count {
		e, n, err := parseEntry(rest)
		if err != nil {
			return err
		}
		ix.entries, rest = append(ix.entries, e), rest[n:]
		ix.names[e.name] = true
	}
	for len(rest) >= 8 {
		name, size := string(rest[:4]), binary.BigEndian.Uint32(rest[4:])
		if int64(size) > int64(len(rest)-8) || name[0] < 'A' || name[0] > 'Z' { // one that must be understood
			return errUncommon
		}
		if name == "TREE" {
			ix.tree = rootTree(rest[8 : 8+size])
		}
		rest = rest[8+size:]
	}
	return nil
}

// parseEntry reads the first entry, and returns how long it is.
func parseEntry(b []byte) (indexEntry, int, error) {
	if len(b) < entrySize {
		return indexEntry{}, 0, errUncommon
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	flags := binary.BigEndian.Uint16(b[40+hashSize:])
	e := indexEntry{
		ctime: [2]uint32{word(0), word(1)}, mtime: [2]uint32{word(2), word(3)}, inode: word(5), mode: word(6), size: word(9),
		hash: b[40 : 40+hashSize], stage: int(flags >> 12 & 3), special: flags&0xc000 != 0, // assumed valid, or extended
	}
	start := entrySize
	if flags&0x4000 != 0 {
		start += 2
	}
	if len(b) < start {
		return e, 0, errUncommon
	}
	end := bytes.IndexByte(b[start:], 0)
	if end < 0 {
		return e, 0, errUncommon
	}
	e.name = string(b[start : start+end])
	n := (start + end + 8) / 8 * 8
	if n > len(b) {
		return e, 0, errUncommon
	}
	return e, n, nil
}

// rootTree returns the tree that the whole index is equal to, from the extension
// in which git notes that, or nothing.
func rootTree(b []byte) string {
	_, b, _ = bytes.Cut(b, []byte{0})
	line, hash, ok := bytes.Cut(b, []byte{'\n'})
	count, _, _ := strings.Cut(string(line), " ")
	if n, err := strconv.Atoi(count); !ok || err != nil || n < 0 || len(hash) < hashSize {
		return ""
	}
	return hex.EncodeToString(hash[:hashSize])
}
