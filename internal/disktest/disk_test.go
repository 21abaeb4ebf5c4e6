package disktest

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcomes cuts the power many times and returns what was left, as "path=data".
func outcomes(d *Disk) []string {
	seen := map[string]bool{}
	for seed := range uint64(400) {
		left := d.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		var all []string
		for _, path := range left.Paths() {
			data, _ := left.ReadFile(path)
			all = append(all, path+"="+string(bytes.ReplaceAll(data, []byte{0}, []byte("0"))))
		}
		seen[strings.Join(all, " ")] = true
	}
	var list []string
	for s := range seen {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

func expect(t *testing.T, d *Disk, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := outcomes(d); !slices.Equal(got, want) {
		t.Errorf("a power cut leaves %q, want %q", got, want)
	}
}

func create(t *testing.T, d *Disk, path string) *File {
	t.Helper()
	f, err := d.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	return f
}

func TestWritesAreDurableAfterSync(t *testing.T) {
	d := New()
	d.Put("/f", "", 0o600)
	f := create(t, d, "/f")
	_, err := f.Write([]byte("ab"))
	must(t, err)
	expect(t, d, "/f=", "/f=a", "/f=ab", "/f=0", "/f=00")
	must(t, f.Sync())
	expect(t, d, "/f=ab")
	_, err = f.Write([]byte("c"))
	must(t, err)
	_, err = f.Write([]byte("d"))
	must(t, err)
	expect(t, d, "/f=ab", "/f=abc", "/f=ab0", "/f=abcd", "/f=abc0", "/f=ab0d", "/f=ab00")
	must(t, f.Truncate(1))
	must(t, f.Sync())
	expect(t, d, "/f=a")
}

func TestTruncateIsDurableAfterSync(t *testing.T) {
	d := New()
	d.Put("/f", "abcd", 0o600)
	f := create(t, d, "/f")
	must(t, f.Truncate(2))
	expect(t, d, "/f=abcd", "/f=ab")
	must(t, f.Sync())
	expect(t, d, "/f=ab")
}

// What is written while a sync runs is not durable when it ends.
func TestSyncCoversWhatCameBefore(t *testing.T) {
	d := New()
	d.Put("/f", "", 0o600)
	f := create(t, d, "/f")
	_, err := f.Write([]byte("a"))
	must(t, err)
	d.Hook = func(op Op) error {
		if op.Name == "sync" {
			d.Hook = nil
			_, err := f.Write([]byte("b"))
			return err
		}
		return nil
	}
	must(t, f.Sync())
	expect(t, d, "/f=a", "/f=ab", "/f=a0")
}

func TestNamesAreDurableAfterSyncDir(t *testing.T) {
	d := New()
	must(t, d.Mkdir("/d", 0o700))
	f := create(t, d, "/d/f")
	must(t, f.Sync())
	must(t, d.SyncDir("/d"))
	expect(t, d, "", "/d= /d/f=") // the directory itself is a name in its parent
	must(t, d.SyncDir("/"))
	expect(t, d, "/d= /d/f=")
	must(t, d.Remove("/d/f"))
	expect(t, d, "/d= /d/f=", "/d=")
	must(t, d.SyncDir("/d"))
	expect(t, d, "/d=")
	must(t, d.Remove("/d"))
	must(t, d.SyncDir("/"))
	expect(t, d, "")
}

func TestRenameIsWhole(t *testing.T) {
	d := New()
	d.Put("/a/f", "new", 0o600)
	d.Put("/b/f", "old", 0o600)
	before, after := "/a= /a/f=new /b= /b/f=old", "/a= /b= /b/f=new"
	must(t, d.Rename("/a/f", "/b/f"))
	expect(t, d, before, after)
	must(t, d.SyncDir("/a"))
	expect(t, d, before, after)
	must(t, d.SyncDir("/b"))
	expect(t, d, after)
}

func TestKillKeepsAllButLocks(t *testing.T) {
	d := New()
	f := create(t, d, "/f")
	must(t, f.Lock())
	_, err := f.Write([]byte("a"))
	must(t, err)
	other := d.Reopen()
	g := create(t, other, "/f")
	if err := g.Lock(); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("locked twice: %v", err)
	}
	d.Kill()
	must(t, g.Lock())
	if data, err := other.ReadFile("/f"); string(data) != "a" || err != nil {
		t.Errorf("read %q, %v", data, err)
	}
	if _, err := f.Write([]byte("b")); !errors.Is(err, ErrKilled) {
		t.Errorf("a killed process wrote: %v", err)
	}
	if err := d.Remove("/f"); !errors.Is(err, ErrKilled) {
		t.Errorf("a killed process removed: %v", err)
	}
	must(t, g.Close())
	must(t, create(t, other, "/f").Lock())
}

func TestHookSeesAndStops(t *testing.T) {
	d := New()
	var ops []string
	d.Hook = func(op Op) error {
		ops = append(ops, op.Name)
		if op.Name == "remove" {
			return syscall.EIO
		}
		return nil
	}
	f := create(t, d, "/f")
	create(t, d, "/f") // exists: nothing is changed
	_, err := f.Write([]byte("a"))
	must(t, errors.Join(err, f.Sync(), d.SyncDir("/"), d.Link("/f", "/g"), d.Symlink("f", "/l"), d.Rename("/g", "/h")))
	if err := d.Remove("/h"); !errors.Is(err, syscall.EIO) {
		t.Errorf("Remove = %v", err)
	}
	want := []string{"create", "write", "sync", "syncdir", "link", "symlink", "rename", "remove"}
	if !slices.Equal(ops, want) {
		t.Errorf("the hook saw %v, want %v", ops, want)
	}
	if got := d.Paths(); !slices.Equal(got, []string{"/f", "/h", "/l"}) {
		t.Errorf("paths are %v", got)
	}
}

func TestReadDirAndSameFile(t *testing.T) {
	d := New()
	d.Put("/d/b", "", 0o600)
	d.Put("/d/a/x", "", 0o600)
	entries, err := d.ReadDir("/d")
	if len(entries) != 2 || entries[0].Name() != "a" || !entries[0].IsDir() || entries[1].Name() != "b" || err != nil {
		t.Errorf("ReadDir = %v, %v", entries, err)
	}
	if _, err := d.ReadDir("/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadDir = %v", err)
	}
	f := create(t, d, "/d/b")
	open, err := f.Stat()
	must(t, err)
	there, err := d.Lstat("/d/b")
	must(t, err)
	if !SameFile(open, there) {
		t.Error("not the same")
	}
	d.Put("/d/b", "", 0o600)
	there, err = d.Lstat("/d/b")
	must(t, err)
	if SameFile(open, there) {
		t.Error("still the same after it was replaced")
	}
}
