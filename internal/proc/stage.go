//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/fermata-agent/fermata/internal/proc/socket"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"golang.org/x/sys/unix"
)

// stageMain waits for its orders, prepares itself and becomes the command. It
// returns only if it does not.
func stageMain(k kind, confine func(json.RawMessage) (*os.File, error)) int {
	runtime.LockOSThread() // what confine does to this thread must hold at exec
	closeOursOnExec()
	hideFromTracers()

	in := json.NewDecoder(os.NewFile(controlFD, "orders"))
	var o stageOrder
	if in.Decode(&o) != nil {
		return 0 // the caller has given up
	}

	c, err := o.prepare(confine)
	if err != nil {
		return giveUp(err)
	}
	if k.user {
		if err := inheritNoRights(); err != nil {
			return giveUp(fmt.Errorf("give up rights: %w", err))
		}
	}

	var r release
	if in.Decode(&r) != nil || !r.Release {
		return 0
	}
	return giveUp(c.exec())
}

// closeOursOnExec keeps our descriptors from the command.
func closeOursOnExec() {
	for _, fd := range []int{controlFD, statusFD, socketFD} {
		unix.CloseOnExec(fd)
	}
}

// giveUp tells the shim why there is no command.
func giveUp(err error) int {
	if text, err := json.Marshal(failureOf(err)); err == nil {
		_ = socket.Send(statusFD, text, nil)
	}
	return 127
}

// image is a command ready to run.
type image struct {
	path      string
	argv, env []string
	socket    int // a descriptor that it inherits; 0 for none
}

// prepare does everything short of exec.
func (o *stageOrder) prepare(confine func(json.RawMessage) (*os.File, error)) (*image, error) {
	if o.TTY != "" {
		if err := takeTerminal(o.TTY); err != nil {
			return nil, fmt.Errorf("open terminal: %w", err)
		}
	}
	c, err := o.find()
	if err != nil {
		return nil, err
	}
	reserveProcesses()
	_ = tree.SetMark(o.Mark) // without it less is found after a crash
	if o.Confine == nil {
		return c, nil
	}

	if confine == nil {
		return nil, errors.New("confine: this program has no confinement")
	}
	toServe, err := confine(o.Confine)
	if err == nil && toServe != nil {
		err = socket.Send(statusFD, []byte(" "), toServe) // a blank means nothing in JSON
	}
	if err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	return c, nil
}

// find changes to the command's directory and finds its program from there.
func (o *stageOrder) find() (*image, error) {
	c := &image{argv: stringsOf(o.Argv), env: stringsOf(o.Env)}
	if err := os.Chdir(string(o.Dir)); err != nil {
		return nil, fmt.Errorf("change to working directory: %w", err)
	}

	path, err := lookPath(c.argv[0], c.env)
	if err != nil {
		return nil, err
	}
	c.path = path
	if o.Socket {
		c.socket, c.env, err = socket.Pass(socketFD, c.env)
	}
	return c, err
}

// exec returns only on failure.
func (c *image) exec() error {
	err := syscall.Exec(c.path, c.argv, c.env)
	return &fs.PathError{Op: "exec", Path: c.path, Err: err}
}

// lookPath finds name in the PATH of the command's own environment.
func lookPath(name string, env []string) (string, error) {
	path := ""
	for _, kv := range env {
		if v, found := strings.CutPrefix(kv, "PATH="); found {
			path = v
		}
	}
	if err := os.Setenv("PATH", path); err != nil {
		return "", err
	}

	found, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", &fs.PathError{Op: "find in PATH", Path: name, Err: syscall.ENOENT}
	}
	return found, err
}

// takeTerminal makes the terminal our standard files and controls it. We lead a
// session without a terminal, so the kernel lets us.
func takeTerminal(path string) error {
	fd, err := openSlave(path)
	if err != nil {
		return err
	}

	if err := unix.IoctlSetInt(fd, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("control %s: %w", path, err)
	}
	for _, std := range []int{0, 1, 2} {
		if err := dup2(fd, std); err != nil {
			return err
		}
	}
	return nil
}

// openSlave opens a terminal without making it ours.
func openSlave(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

func stringsOf(list [][]byte) []string {
	s := make([]string, len(list))
	for i, b := range list {
		s[i] = string(b)
	}
	return s
}

func bytesOf(list []string) [][]byte {
	b := make([][]byte, len(list))
	for i, s := range list {
		b[i] = []byte(s)
	}
	return b
}
