package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

// patience is how long a test waits for what must happen. It is long because
// the machine may be busy; nothing is learned from it but that it happened.
const patience = 10 * time.Minute

// eventually waits until cond is true. It looks less often the longer it waits: to look costs more than to wait.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	eventuallyWithin(t, 100*time.Millisecond, what, cond)
}

// eventuallyWithin waits until cond is true and looks at least once in a time.
func eventuallyWithin(t testing.TB, often time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(untilDeadline(t))
	defer deadline.Stop()
	pause := min(10*time.Millisecond, often)
	for !cond() {
		select {
		case <-time.After(pause):
			pause = min(pause*3/2, often)
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// untilDeadline is how long a test may wait: it ends before the whole run does, to say what it waited for.
func untilDeadline(t testing.TB) time.Duration {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			return min(patience, time.Until(end)-10*time.Second)
		}
	}
	return patience
}

// binaryDir is where the binary was built, if a test needed it.
var binaryDir atomic.Pointer[string]

// shortPace is how long the binary under test waits for stdin: see package stdin.
const shortPace = "200ms"

// binary is what the tests run as fermata. Linking takes as long as many tests, so that a plain run
// takes the binary of the tests, which is fermata if it is called so, as in TestScripts.
func binary(t testing.TB) (string, error) {
	if _, measured := t.(*testing.B); measured || longtest.On() || raceDetector {
		return build()
	}
	return exec.LookPath("fermata")
}

// build makes the binary that people get, once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fermata-binary")
	if err != nil {
		return "", err
	}
	binaryDir.Store(&dir)
	if err := os.Chmod(dir, 0o755); err != nil { // for other users
		return "", err
	}
	file := filepath.Join(dir, "fermata")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-X github.com/fermata-agent/fermata/internal/app/stdin.Pace="+shortPace, "-o", file, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

// A place is a home, a working directory and a binary of its own. Whatever
// runs there can be told by the name of its directory.
type place struct {
	t    testing.TB
	dir  string
	bin  string
	work string
	env  []string
	user *syscall.Credential // nil for the user who runs the tests
}

func newPlace(t testing.TB) *place {
	t.Helper()
	file, err := binary(t)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // for other users
		t.Fatal(err)
	}
	pl := &place{t: t, dir: dir, bin: filepath.Join(dir, "fermata"), work: filepath.Join(dir, "work")}
	if err := os.Link(file, pl.bin); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	for _, d := range []string{pl.work, home, pl.repo()} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pl.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "FERMATA_HOME=" + filepath.Join(home, "fermata"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
	}
	return pl
}

// repo is what makes fermata, but not git, take the place for a git repository,
// so that only the tests about that need to care.
func (pl *place) repo() string { return filepath.Join(pl.dir, ".git") }

// newPlaceFor is a place of another user.
func newPlaceFor(t testing.TB, uid uint32) *place {
	t.Helper()
	pl := newPlace(t)
	pl.user = &syscall.Credential{Uid: uid, Gid: uid}
	for _, d := range []string{pl.work, filepath.Join(pl.dir, "home")} {
		if err := os.Chown(d, int(uid), int(uid)); err != nil {
			t.Fatal(err)
		}
	}
	return pl
}

// file writes a file into the working directory, for everybody to run.
func (pl *place) file(name, text string) {
	pl.t.Helper()
	if err := os.WriteFile(filepath.Join(pl.work, name), []byte(text), 0o755); err != nil {
		pl.t.Fatal(err)
	}
}

func (pl *place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, pl.bin, args...)
	cmd.Dir, cmd.Env = pl.work, pl.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: pl.user}
	cmd.WaitDelay = 2 * time.Minute // a survivor that holds our pipes is found by other means
	return cmd
}

// run runs the binary to its end.
func (pl *place) run(args ...string) (out, errs string, code int) {
	pl.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := pl.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		pl.t.Fatalf("fermata %q: %v\n%s", args, err, stderr.String())
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// must runs the binary and expects success.
func (pl *place) must(args ...string) string {
	pl.t.Helper()
	out, errs, code := pl.run(args...)
	if code != 0 {
		pl.t.Fatalf("fermata %q: exit code %d\n%s%s", args, code, out, errs)
	}
	return out
}

// reader looks at the place's conversations from here, as list and show do, but
// without a process each time: a test looks often.
func (pl *place) reader() *engine.Local {
	store := file.New(filepath.Join(pl.dir, "home", "fermata"), file.Options{})
	return enginetest.Open(pl.t, store, engine.Config{})
}

// conversations lists what there is, the one changed last first.
func (pl *place) conversations() []engine.Summary {
	pl.t.Helper()
	var list []engine.Summary
	for s, err := range app.All(context.Background(), pl.reader(), engine.ListOptions{}) {
		if err != nil {
			pl.t.Fatalf("list: %v", err)
		}
		list = append(list, s)
	}
	return list
}

// conversation waits for the first conversation and returns its id.
func (pl *place) conversation() string {
	pl.t.Helper()
	var id string
	eventually(pl.t, "a conversation begins", func() bool {
		for _, s := range pl.conversations() {
			id = string(s.ID)
		}
		return id != ""
	})
	return id
}

// events are those of a conversation, whoever runs it.
func (pl *place) events(id string) []p.Event {
	pl.t.Helper()
	var list []p.Event
	for e, err := range pl.reader().Read(context.Background(), p.ConversationID(id)) {
		if err != nil {
			pl.t.Fatalf("show %s: %v", id, err)
		}
		list = append(list, e)
	}
	return list
}

// awaitEvent waits until the conversation has an event that is accepted.
func (pl *place) awaitEvent(id, what string, accept func(p.Body) bool) {
	pl.t.Helper()
	eventually(pl.t, what, func() bool {
		for _, e := range pl.events(id) {
			if accept(e.Body) {
				return true
			}
		}
		return false
	})
}

// awaitText waits until an item that is not finished has a text.
func (pl *place) awaitText(id, text string) {
	pl.t.Helper()
	pl.awaitEvent(id, "there is "+text, func(b p.Body) bool {
		d, ok := b.(*p.Delta)
		return ok && strings.Contains(d.Text, text)
	})
}

// sound checks that a conversation keeps the promises and can be gone on with.
// It returns what the model says that it was told.
func (pl *place) sound(id string) string {
	pl.t.Helper()
	told := pl.must("exec", "resume", id, "what happened?")
	pl.fsck(id)
	return told
}

// fsck checks conversations, all of them if none is named, as the command of that name does.
func (pl *place) fsck(ids ...string) {
	pl.t.Helper()
	e := pl.reader()
	if len(ids) == 0 {
		for _, archived := range []bool{false, true} {
			for s, err := range app.All(context.Background(), e, engine.ListOptions{Archived: archived}) {
				if err != nil {
					pl.t.Fatalf("list: %v", err)
				}
				ids = append(ids, string(s.ID))
			}
		}
	}
	if len(ids) == 0 {
		pl.t.Fatal("fsck: there is no conversation")
	}
	for _, id := range ids {
		if r, err := e.Check(context.Background(), p.ConversationID(id)); err != nil || len(r.Problems) > 0 {
			pl.t.Fatalf("fsck %s: %v %q", id, err, r.Problems)
		}
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s\n%s\nwant in it\n%s", what, text, part)
		}
	}
}
