package file_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/journaltest"
	"github.com/fermata-agent/fermata/protocol"
)

// The test binary runs itself as another process that has a conversation open.
const (
	roleVar = "JOURNAL_TEST_ROLE"
	homeVar = "JOURNAL_TEST_HOME"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "idle":
		io.Copy(io.Discard, os.Stdin)
	case "owner":
		own(false)
	case "owner with child":
		own(true)
	case "writer":
		writeUntilKilled()
	}
}

// own opens the conversation, says so, and closes it when told to.
func own(child bool) {
	j, err := file.New(os.Getenv(homeVar), file.Options{Address: func() string { return "unix:/run/owner" }}).Open(context.Background(), sampleID)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	n := j.Append(journal.Entry{Kind: "owner"})
	for d, _ := j.Durable(); d < n; d, _ = j.Durable() {
		<-j.Notify()
	}
	if child {
		c := command("idle", "")
		c.Stdin = os.Stdin // it lives as long as the test wants
		if err := c.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("child", c.Process.Pid)
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	j.Close()
}

func command(role, home string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), roleVar+"="+role, homeVar+"="+home)
	return c
}

// An owner is another process with the conversation open.
type owner struct {
	*exec.Cmd
	stop  io.Closer
	child int
}

func startOwner(t *testing.T, role, home string) *owner {
	t.Helper()
	o := &owner{Cmd: command(role, home)}
	in, err := o.StdinPipe()
	must(t, err)
	o.stop = in
	out, err := o.StdoutPipe()
	must(t, err)
	must(t, o.Start())
	t.Cleanup(func() {
		in.Close()
		o.Process.Kill()
		o.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		if _, err := fmt.Sscanf(lines.Text(), "child %d", &o.child); err != nil {
			t.Fatalf("owner says %q", lines.Text())
		}
	}
	return o
}

func lockedHome(t *testing.T) (string, *file.Store) {
	t.Helper()
	home := t.TempDir()
	s := file.New(home, file.Options{})
	j, err := s.Create(t.Context(), sampleID, time.Now())
	must(t, err)
	must(t, j.Close())
	return home, s
}

// openLocked is the error of opening a conversation that another process has open. Open waits for it in a bubble, whose clock
// does not wait.
func openLocked(t *testing.T, home string) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { _, err = file.New(home, file.Options{}).Open(t.Context(), sampleID) })
	return err
}

func TestAnotherProcessOwnsIt(t *testing.T) {
	home, s := lockedHome(t)
	o := startOwner(t, "owner", home)
	err := openLocked(t, home)
	var locked *journal.LockedError
	if !errors.As(err, &locked) || locked.PID != o.Process.Pid {
		t.Errorf("Open = %v, want an error that names %d", err, o.Process.Pid)
	}
	if !strings.Contains(fmt.Sprint(err), fmt.Sprintf("process %d has this conversation open", o.Process.Pid)) {
		t.Errorf("Open = %v", err)
	}
	if want := (journal.Owner{PID: o.Process.Pid, Host: protocol.Self("").Host, Address: "unix:/run/owner"}); locked.Owner != want {
		t.Errorf("owner is %+v, want %+v", locked.Owner, want)
	}
	if err := s.Delete(t.Context(), sampleID); !errors.As(err, &locked) {
		t.Errorf("Delete = %v", err)
	}

	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	if recs, err := v.Read(t.Context(), 0, 10); len(recs) != 1 || err != nil {
		t.Errorf("Read = %v, %v", recs, err)
	}
	if infos, err := s.List(t.Context()); len(infos) != 1 || err != nil {
		t.Errorf("List = %v, %v", infos, err)
	}
}

func TestAnotherProcessEnds(t *testing.T) {
	home, s := lockedHome(t)
	for name, end := range map[string]func(*owner){
		"well":     func(o *owner) { o.stop.Close() },
		"by force": func(o *owner) { o.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			o := startOwner(t, "owner", home)
			opened := make(chan error)
			go func() {
				j, err := s.Open(t.Context(), sampleID)
				if err == nil {
					err = j.Close()
				}
				opened <- err
			}()
			end(o)
			must(t, <-opened)
		})
	}
}

// The lock of an owner that was killed is free at once: no poll is needed, and
// its children, which live on, do not keep it.
func TestDeadOwnersLockIsTaken(t *testing.T) {
	home, s := lockedHome(t)
	for _, role := range []string{"owner", "owner with child"} {
		t.Run(role, func(t *testing.T) {
			o := startOwner(t, role, home)
			must(t, o.Process.Kill())
			o.Wait()
			if o.child != 0 {
				must(t, alive(o.child))
			}
			must(t, s.Archive(t.Context(), sampleID)) // which does not wait for a lock
			if o.child != 0 {
				must(t, alive(o.child))
			}
		})
	}
}

// As after a kill, the file is left and the lock is not.
func TestAbandonLeavesTheLockFile(t *testing.T) {
	home, s := lockedHome(t)
	j, err := s.Open(t.Context(), sampleID)
	must(t, err)
	before := tree(t, home)
	if a := j.(interface{ Abandon() bool }); !a.Abandon() || a.Abandon() {
		t.Error("Abandon does not tell whether the journal was open")
	}
	if diff := cmp.Diff(before, tree(t, home)); diff != "" {
		t.Error(diff)
	}
	j, err = s.Open(t.Context(), sampleID)
	must(t, err)
	must(t, j.Close())
	if j.(interface{ Abandon() bool }).Abandon() {
		t.Error("a closed journal was open")
	}
}

func alive(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(syscall.Signal(0))
}

// A replacingFS lets another process put a new file in the place of a journal when it was just opened.
type replacingFS struct {
	file.FS
	replace func()
}

func (r *replacingFS) OpenFile(name string, flag int, perm fs.FileMode) (file.File, error) {
	f, err := r.FS.OpenFile(name, flag, perm)
	if replace := r.replace; replace != nil && err == nil && strings.HasSuffix(name, ".jsonl") {
		r.replace = nil
		replace()
	}
	return f, err
}

// A journal that was replaced after it was opened and before it was locked, as by a repair, is not written to: the one that is
// at its place now is.
func TestOpenLocksTheFileAtItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := emptyDisk()
		j, _ := begin(t, modelStore(d), sampleID, "a")
		must(t, j.Close())
		path := pathOf(t, modelStore(d), sampleID)
		data, err := d.ReadFile(path)
		must(t, err)
		fsys := &replacingFS{FS: modelFS(d)}
		s := file.New(journaltest.Home, file.Options{FS: fsys})
		fsys.replace = func() { d.Put(path, string(data), 0o600) }
		j, err = s.Open(t.Context(), sampleID)
		must(t, err)
		j.Append(e("b"))
		if err := j.Close(); err != nil || fsys.replace != nil {
			t.Errorf("Close = %v", err)
		}
		now, err := d.ReadFile(path)
		must(t, err)
		if !strings.Contains(string(now), `"kind":"b"`) {
			t.Error("the record went to the file that was replaced")
		}
	})
}

// strangeFS is a file system on which no open file is the one that its name refers to.
type strangeFS struct{ file.FS }

func (strangeFS) SameFile(fs.FileInfo, fs.FileInfo) bool { return false }

// However strange a file system is, opening ends.
func TestOpenEndsWhereFilesHaveNoIdentity(t *testing.T) {
	d := emptyDisk()
	j, _ := begin(t, modelStore(d), sampleID, "a")
	must(t, j.Close())
	s := file.New(journaltest.Home, file.Options{FS: strangeFS{modelFS(d)}})
	if _, err := s.Open(t.Context(), sampleID); err == nil || !strings.Contains(err.Error(), "it was replaced 1000 times") {
		t.Errorf("Open = %v", err)
	}
}
