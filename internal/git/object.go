package git

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/fermata-agent/fermata/internal/regular"
)

// headTree returns the tree of the last commit, or nothing before the first.
func (l Location) headTree() (string, error) {
	commit, err := l.headCommit()
	if err != nil || commit == "" {
		return "", err
	}
	text, err := l.commit(commit)
	if err != nil {
		return "", err
	}
	tree, ok := strings.CutPrefix(text, "tree ")
	if !ok || len(tree) < 2*hashSize {
		return "", errUncommon
	}
	return tree[:2*hashSize], nil
}

func (l Location) headCommit() (string, error) {
	head, err := readSmall(filepath.Join(l.Dir, "HEAD"))
	if err != nil {
		return "", err
	}
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok {
		return isHash(head)
	}
	if !strings.HasPrefix(ref, "refs/heads/") || ref == invalidHead {
		return "", errUncommon
	}
	if text, err := readSmall(filepath.Join(l.Common, filepath.FromSlash(ref))); err == nil {
		return isHash(text)
	}
	packed, err := readSmall(filepath.Join(l.Common, "packed-refs"))
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil || len(packed) >= smallMax-1 {
		return "", errUncommon
	}
	for line := range strings.SplitSeq(packed, "\n") {
		if hash, name, _ := strings.Cut(line, " "); name == ref {
			return isHash(hash)
		}
	}
	return "", nil
}

func isHash(s string) (string, error) {
	if _, err := hex.DecodeString(s); err != nil || len(s) != 2*hashSize {
		return "", errUncommon
	}
	return s, nil
}

// commit returns the beginning of a commit.
func (l Location) commit(hash string) (string, error) {
	objects := filepath.Join(l.Common, "objects")
	if f, err := regular.Open(filepath.Join(objects, hash[:2], hash[2:])); err == nil {
		defer f.Close()
		text, err := inflate(f)
		_, text, ok := strings.Cut(text, "\x00")
		if err == nil && !ok {
			err = errUncommon
		}
		return text, err
	}
	packs, _ := filepath.Glob(filepath.Join(globQuote(objects), "pack", "*.idx"))
	for _, name := range packs {
		if text, err := packedCommit(name, hash); err == nil {
			return text, nil
		}
	}
	return "", errUncommon
}

// inflate returns the first bytes of what is compressed: the header of a loose
// object and the first line of a commit.
func inflate(r io.Reader) (string, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(z, 256))
	return b.String(), err
}

// The parts of an index of a pack, version 2: a header, how many objects there are up to
// each first byte, their hashes, their checksums, and where in the pack they are.
const (
	packHeader = "\xfftOc\x00\x00\x00\x02"
	packFirst  = 8 + 4*256
)

// packedCommit returns the beginning of a commit that is whole in a pack.
func packedCommit(indexName, hash string) (string, error) {
	f, err := regular.Open(indexName)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var head [packFirst]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || string(head[:8]) != packHeader {
		return "", errUncommon
	}
	want, err := hex.DecodeString(hash)
	if err != nil {
		return "", err
	}
	upTo := func(first int) int { return int(binary.BigEndian.Uint32(head[8+4*first:])) }
	total, low, high := upTo(255), 0, upTo(int(want[0]))
	if want[0] > 0 {
		low = upTo(int(want[0]) - 1)
	}
	if low > high || high > total {
		return "", errUncommon
	}
	var found [hashSize]byte
	read := func(b []byte, at int) bool { _, err := f.ReadAt(b, int64(at)); return err == nil }
	i := low + sort.Search(high-low, func(i int) bool {
		return !read(found[:], packFirst+hashSize*(low+i)) || bytes.Compare(found[:], want) >= 0
	})
	var offset [4]byte
	if i == high || !read(found[:], packFirst+hashSize*i) || !bytes.Equal(found[:], want) || !read(offset[:], packFirst+(hashSize+4)*total+4*i) {
		return "", errUncommon
	}
	return packedAt(strings.TrimSuffix(indexName, ".idx")+".pack", binary.BigEndian.Uint32(offset[:]))
}

func packedAt(name string, offset uint32) (string, error) {
	f, err := regular.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var head [16]byte
	if _, err := f.ReadAt(head[:], int64(offset)); err != nil || offset>>31 != 0 || head[0]>>4&7 != 1 { // a commit, not a difference
		return "", errUncommon
	}
	n := 1
	for ; n < len(head) && head[n-1]&0x80 != 0; n++ {
	}
	return inflate(io.NewSectionReader(f, int64(offset)+int64(n), 1<<20))
}
