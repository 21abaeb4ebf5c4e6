//go:build unix

package proc

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// A command that nothing confines needs no stage: the shim starts it itself when it is
// released. That spares the start of a process for each command.

// direct is such a command, ready to be started.
type direct struct {
	image *image
	files []uintptr
	attr  *syscall.SysProcAttr
}

// superviseDirect is the life of one command without a stage.
func (s *supervisor) superviseDirect(o order) {
	c, err := prepareDirect(o.Stage)
	if err != nil {
		s.say(report{Failed: failureOf(err)})
		return
	}

	select {
	case <-s.release:
	case <-s.stop:
	}
	select {
	case <-s.stop: // also if both have happened
		s.abandon()
		return
	default:
	}
	if err := s.startDirect(c); err != nil {
		s.say(report{Failed: failureOf(err)})
		return
	}
	s.begun = true
	s.follow(o)
}

// prepareDirect does everything short of the start, so that most errors are known
// before the release.
func prepareDirect(text json.RawMessage) (*direct, error) {
	var o stageOrder
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}

	closeOursOnExec()
	c := &direct{files: []uintptr{0, 1, 2}, attr: &syscall.SysProcAttr{Setsid: true}}
	if o.TTY != "" {
		fd, err := openSlave(o.TTY)
		if err != nil {
			return nil, fmt.Errorf("open terminal: %w", err)
		}
		slave := uintptr(fd)
		c.files, c.attr.Setctty = []uintptr{slave, slave, slave}, true
	}
	var err error
	if c.image, err = o.find(); err != nil {
		return nil, err
	}
	_ = tree.SetMark(o.Mark) // the command inherits it; without it less is found after a crash
	return c, nil
}

// startDirect starts the command and closes what only it may have open.
func (s *supervisor) startDirect(c *direct) error {
	bornIn(c.attr, s.group)
	pid, err := c.start()
	if err != nil && s.group != nil {
		s.group.Remove()
		s.group = nil
		bornIn(c.attr, nil)
		pid, err = c.start()
	}
	if err != nil {
		return &fs.PathError{Op: "exec", Path: c.image.path, Err: err}
	}

	reserveProcessesOf(pid)
	s.leader = pid
	go s.reaper.run(pid)
	c.close()
	_ = os.Chdir("/") // do not hold a file system busy
	return nil
}

// start starts the command in a session of its own, with a lower limit of processes than this process has.
func (c *direct) start() (pid int, err error) {
	err = withReserve(func() (err error) {
		pid, err = syscall.ForkExec(c.image.path, c.image.argv, &syscall.ProcAttr{
			Env: c.image.env, Files: c.files, Sys: c.attr,
		})
		return err
	})
	return pid, err
}

// close closes the terminal and the socket.
func (c *direct) close() {
	if c.attr.Setctty {
		_ = syscall.Close(int(c.files[0]))
	}
	if c.image.socket != 0 {
		_ = syscall.Close(c.image.socket)
	}
	_ = syscall.Close(socketFD)
}
