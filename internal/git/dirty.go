package git

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's name of a file
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dirty reports whether the working tree of a repository differs from the last
// commit, with files that are neither tracked nor ignored. Git is run only if the
// answer needs more than files that can be looked at here: a new conversation
// waits for it.
func Dirty(ctx context.Context, o Options) (bool, error) {
	l, err := Find(o.Dir)
	if err != nil {
		return false, err
	}
	if dirty, err := (&look{Location: l, ctx: ctx}).dirty(); err == nil {
		return dirty, nil
	}
	r, err := Open(ctx, o)
	if err != nil {
		return false, err
	}
	defer r.Close()
	return r.Dirty(ctx)
}

// A look is one comparison of a working tree without git. It fails with
// errUncommon if it is not sure.
type look struct {
	Location
	ctx   context.Context
	index index
	read  int64 // bytes of files read
	seen  int   // files and directories looked at
}

const (
	lookRead  = 1 << 20
	lookFiles = 20_000
)

// emptyTree is the tree without files.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func (k *look) dirty() (dirty bool, err error) {
	if k.configured() {
		return false, errUncommon
	}
	if k.index, err = readIndex(filepath.Join(k.Dir, "index")); err != nil {
		return false, err
	}
	tree, err := k.headTree()
	if err != nil {
		return false, err
	}
	if tree == "" && len(k.index.entries) > 0 {
		return true, nil
	}
	for _, e := range k.index.entries {
		if changed, err := k.changed(e); changed || err != nil {
			return changed, err
		}
	}
	switch {
	case len(k.index.entries) == 0 && (tree == "" || tree == emptyTree):
	case len(k.index.entries) > 0 && k.index.tree == "":
		return false, errUncommon
	case k.index.tree != tree:
		return true, nil
	}
	rules := &Ignorer{}
	rules.read(k.Root, userFile("ignore"))
	rules.read(k.Root, filepath.Join(k.Common, "info", "exclude"))
	return k.untracked("", rules)
}

// configured reports whether settings or attributes may say that files are to be
// converted, or looked for or compared in another way than by default.
func (k *look) configured() bool {
	for _, name := range []string{userFile("attributes"), filepath.Join(k.Common, "info", "attributes"), filepath.Join(k.Root, ".gitattributes")} {
		if _, err := os.Lstat(name); err == nil {
			return true
		}
	}
	if info, err := os.Lstat(userFile("ignore")); err == nil && !info.Mode().IsRegular() {
		return true
	}
	home, _ := os.UserHomeDir() // without one there is no file in it
	files := []string{filepath.Join(k.Common, "config"), "/etc/gitconfig", userFile("config"), filepath.Join(home, ".gitconfig")}
	for _, variable := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		files = append(files, os.Getenv(variable))
	}
	for _, name := range files {
		text, err := readSmall(name)
		if err != nil && !os.IsNotExist(err) && name != "" && name != os.DevNull {
			return true
		}
		if unusual(text) {
			return true
		}
	}
	return false
}

// unusual reports whether a file of settings has one that changes what Dirty sees.
func unusual(text string) bool {
	text = strings.ToLower(text)
	text = strings.ReplaceAll(text, "filemode = true", "")
	text = strings.ReplaceAll(text, "ignorecase = false", "")
	for _, word := range []string{
		"include", "autocrlf", "eol", "excludesfile", "attributesfile", "filemode", "ignorecase", "symlinks", "worktree",
		"extensions", "trustctime", "checkstat", "untracked", "sparse", "precompose", "encoding", "showuntrackedfiles",
	} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return len(text) >= smallMax-1
}

// The types of entries, by their mode.
const (
	typeMask    = 0o170000
	typeRegular = 0o100000
	typeLink    = 0o120000
)

// changed reports whether a tracked file is not as it was added.
func (k *look) changed(e indexEntry) (bool, error) {
	if k.seen++; e.special || k.seen > lookFiles || k.ctx.Err() != nil || filepath.Base(e.name) == ".gitattributes" {
		return false, errUncommon
	}
	if e.mode&typeMask != typeRegular && e.mode&typeMask != typeLink {
		return false, errUncommon // a submodule
	}
	if e.stage != 0 {
		return true, nil
	}
	var st unix.Stat_t
	name := filepath.Join(k.Root, filepath.FromSlash(e.name))
	if err := unix.Lstat(name, &st); err != nil {
		return true, nil
	}
	mode := uint32(st.Mode)
	if mode&typeMask != e.mode&typeMask || e.mode&typeMask == typeRegular && (mode^e.mode)&0o100 != 0 {
		return true, nil
	}
	mtime := [2]uint32{uint32(st.Mtim.Sec), uint32(st.Mtim.Nsec)}
	ctime := [2]uint32{uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec)}
	before := st.Mtim.Nano() < k.index.time.UnixNano()
	if before && mtime == e.mtime && ctime == e.ctime && uint32(st.Size) == e.size && uint32(st.Ino) == e.inode {
		return false, nil
	}
	hash, err := k.hash(name, st)
	return !bytes.Equal(hash, e.hash), err
}

// hash returns git's name of the content of a file.
func (k *look) hash(name string, st unix.Stat_t) ([]byte, error) {
	if k.read += st.Size; uint32(st.Mode)&typeMask != typeRegular || k.read > lookRead {
		return nil, errUncommon
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha1.New() //nolint:gosec // git's name of a file
	fmt.Fprintf(h, "blob %d\x00", st.Size)
	if n, err := io.Copy(h, io.LimitReader(f, st.Size+1)); err != nil || n != st.Size {
		return nil, errUncommon // it is being written
	}
	return h.Sum(nil), nil
}

// untracked reports whether there is a file below a directory that is neither
// tracked nor ignored.
func (k *look) untracked(rel string, rules *Ignorer) (bool, error) {
	dir := filepath.Join(k.Root, rel)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, errUncommon
	}
	if k.seen += len(entries); k.seen > lookFiles || k.ctx.Err() != nil {
		return false, errUncommon
	}
	rules = rules.Within(dir)
	for _, e := range entries {
		full, name := filepath.Join(dir, e.Name()), filepath.ToSlash(filepath.Join(rel, e.Name()))
		if rel == "" && e.Name() == ".git" || k.index.names[name] || rules.Ignored(full, e.IsDir()) {
			continue
		}
		if e.Type().IsRegular() || e.Type() == fs.ModeSymlink {
			return true, nil
		}
		if !e.IsDir() {
			continue // git does not see it
		}
		if _, err := os.Lstat(filepath.Join(full, ".git")); err == nil {
			return false, errUncommon
		}
		if dirty, err := k.untracked(name, rules); dirty || err != nil {
			return dirty, err
		}
	}
	return false, nil
}
