package work

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/secrets"
	p "github.com/fermata-agent/fermata/protocol"
)

// Users is the service of a node that several users share: it runs a process for each of them, with a home of its own, whose configuration names
// the user's account on the NATS servers. The processes share the turns that the machine can run.
type Users struct {
	Dir   string   // has a home for each user, under the user's name
	Args  []string // of each process, after "serve"
	Turns int      // of all users at once
	Say   func(string)

	Drain <-chan struct{} // has all end when their turns have ended, if it is closed; nil is never
}

var userName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,31}$`) })

// workEnd is what the directory of a user's work trees ends in, after the user's name: see worktree.
const workEnd = "-work"

// ListUsers returns the users of a directory: those who have a configuration there.
func ListUsers(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		name := e.Name()
		if _, err := os.Stat(filepath.Join(dir, name, config.FileName)); err != nil {
			continue
		}
		if !userName().MatchString(name) || strings.HasSuffix(name, workEnd) {
			return nil, fmt.Errorf("%q is not a name of a user: use up to 32 small letters, digits, _, . and -, and not %s at its end", name, workEnd)
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no users: a user is a directory with a %s", dir, config.FileName)
	}
	return list, nil
}

// Serve runs the processes until ctx ends, or all are drained: then the error is ErrDrained.
func (u Users) Serve(ctx context.Context, a *app.App) error {
	defer a.Busy()()
	list, err := ListUsers(u.Dir)
	if err != nil {
		return err
	}
	for _, name := range list { // before anything runs: the directories are hidden from others
		if err := os.Mkdir(filepath.Join(u.Dir, name+workEnd), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	permits := fleet.NewPermits(u.Turns)
	drained := make(chan struct{})
	var running sync.WaitGroup
	for _, name := range list {
		running.Go(func() { u.keep(ctx, name, permits) })
	}
	go func() { // ends with them
		running.Wait()
		close(drained)
	}()
	u.Say(fmt.Sprintf("this node is shared by %s", strings.Join(list, ", ")))
	<-drained
	if ctx.Err() == nil {
		return ErrDrained
	}
	return nil
}

// How long to wait before a process is started again that has ended, and how long one has to end.
const (
	startAgain = 2 * time.Second
	userEnd    = 10 * time.Second
)

// keep runs the process of a user until ctx ends or the node is drained.
func (u Users) keep(ctx context.Context, name string, permits *fleet.Permits) {
	for {
		err := u.run(ctx, name, permits)
		if ctx.Err() != nil || u.isDrained() {
			return
		}
		u.Say(fmt.Sprintf("%s: its process has ended (%v), and is started again", name, err))
		select {
		case <-time.After(startAgain):
		case <-ctx.Done():
			return
		case <-u.Drain:
			return
		}
	}
}

func (u Users) isDrained() bool {
	select {
	case <-u.Drain:
		return true
	default:
		return false
	}
}

// run runs the process of a user once.
func (u Users) run(ctx context.Context, name string, permits *fleet.Permits) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer ours.Close()
	home := filepath.Join(u.Dir, name)
	args := slices.Concat([]string{"serve"}, u.Args, []string{"--allow-dir", home + workEnd, "--user-of", u.Dir})
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "FERMATA_HOME="+home)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for this process, which ends them
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer in.Close()
	serving.Go(func() { u.pass(name, out) })
	serving.Go(func() { _ = permits.Serve(ours) }) // ends with the process
	ended := make(chan struct{})
	serving.Go(func() { u.end(ctx, cmd, ended) })
	defer close(ended)
	return cmd.Wait()
}

// socketPair returns both ends of a connection, which no other program that is started inherits.
func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // not every system can do both at once
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "permits"), os.NewFile(uintptr(fds[1]), "permits"), nil
}

// end ends a process when ctx ends, or has it drain.
func (u Users) end(ctx context.Context, cmd *exec.Cmd, ended <-chan struct{}) {
	select {
	case <-u.Drain:
		_ = cmd.Process.Signal(syscall.SIGTERM) // it was started with --drain
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
	case <-ctx.Done():
	case <-ended:
		return
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-time.After(userEnd):
		_ = cmd.Process.Kill()
	case <-ended:
	}
}

// pass passes on what a process says.
func (u Users) pass(name string, out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		u.Say(name + ": " + strings.TrimPrefix(lines.Text(), "fermata: "))
	}
	_, _ = io.Copy(io.Discard, out) // a line that is too long
}

// permitsFD is where the process of a user has its connection to the one that started it.
const permitsFD = 3

// A Share is how a process takes part in a node that several users share.
type Share struct {
	Dir  string // of all users
	Home string // of this one

	permits *fleet.Permitted
}

// OpenShare returns the share of a process that Users has started. What belongs to other users is hidden from commands.
func OpenShare(dir, home string) (*Share, error) {
	unix.CloseOnExec(permitsFD) // commands must not use it
	s := &Share{Dir: dir, Home: home, permits: fleet.NewPermitted(os.NewFile(permitsFD, "permits"))}
	return s, s.hide()
}

// hide hides what belongs to other users from the commands and tools of this one. It is called again before each turn: there may be new users.
func (s *Share) hide() error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	own := filepath.Base(s.Home)
	for _, e := range entries {
		if e.Name() == own || e.Name() == own+workEnd {
			continue
		}
		if err := secrets.Home(s.Home).RegisterDir(filepath.Join(s.Dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// isAlone reports whether the process that it shares with has ended.
func (s *Share) isAlone() bool {
	select {
	case <-s.permits.Gone:
		return true
	default:
		return false
	}
}

// join has a worker run what the share allows, and ends it with the process that it shares with.
func (s *Share) join(ctx context.Context, w *fleet.Worker, stop func()) {
	w.Permit = s.permits.Acquire
	prepare := w.Prepare
	w.Prepare = func(ctx context.Context, work fleet.Work) (*p.Overrides, error) {
		if err := s.hide(); err != nil {
			return nil, err
		}
		return prepare(ctx, work)
	}
	go func() { // ends with ctx
		select {
		case <-s.permits.Gone:
			stop()
		case <-ctx.Done():
		}
	}()
}
