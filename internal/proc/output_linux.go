package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pump reads all sources to their end. One goroutine does it over an epoll set of
// its own, because the kernel lists there first what became ready first: with a
// goroutine for each source the scheduler would decide, and a program's last
// error would often precede its last line.
type pump struct {
	sources []source
	set     *os.File // the epoll set; itself watched by the runtime's poller
	done    chan struct{}
}

// startPump begins to deliver output to sink. The sources are closed by finish.
func startPump(sources []source, sink Sink) (*pump, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}

	p := &pump{sources: sources, set: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{})}
	for i, s := range sources {
		if err := p.add(fd, i, s); err != nil {
			_ = p.set.Close()
			return nil, err
		}
	}
	go p.run(sink)
	return p, nil
}

// add watches a source. Its number, not its descriptor, comes with the events.
func (p *pump) add(set, i int, s source) error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}

	var ctlErr error
	err = raw.Control(func(fd uintptr) {
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		ctlErr = unix.EpollCtl(set, unix.EPOLL_CTL_ADD, int(fd), &ev)
	})
	return errors.Join(err, os.NewSyscallError("epoll_ctl", ctlErr))
}

// run delivers until all sources have ended or the deadline has passed.
func (p *pump) run(sink Sink) {
	defer close(p.done)
	raw, err := p.set.SyscallConn()
	if err != nil {
		return
	}

	buf := make([]byte, chunkSize)
	events := make([]unix.EpollEvent, len(p.sources))
	for open := len(p.sources); open > 0; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events, 0)
			return n > 0
		})
		if err != nil {
			for _, s := range p.sources {
				s.rest(buf, sink)
			}
			return
		}
		for _, ev := range events[:n] {
			if !p.deliver(p.sources[ev.Fd], buf, sink) {
				open--
			}
		}
	}
}

// deliver passes one piece of a ready source on. It reports false, and closes
// the source, at its end; a terminal ends with an error. It must not wait, which
// File.Read would if a process flushed the terminal since it was ready.
func (p *pump) deliver(s source, buf []byte, sink Sink) bool {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return false
	}

	n, readErr := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		n, readErr = unix.Read(int(fd), buf)
		return true
	})
	if errors.Is(readErr, unix.EAGAIN) || errors.Is(readErr, unix.EINTR) {
		return true
	}
	if err == nil && readErr == nil && n > 0 {
		if sink != nil {
			sink(s.stream, buf[:n])
		}
		return true
	}
	_ = s.file.Close() // which takes it out of the set
	return false
}

// finish waits for the end of all output, but for what is not there yet no longer
// than limit: a process that is not ours may hold a pipe open. Then it closes the
// sources.
func (p *pump) finish(limit time.Duration) {
	_ = p.set.SetReadDeadline(time.Now().Add(limit))
	<-p.done
	_ = p.set.Close()
	for _, s := range p.sources {
		_ = s.file.Close()
	}
}
