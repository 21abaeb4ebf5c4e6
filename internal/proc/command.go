//go:build unix

package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/socket"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"golang.org/x/sys/unix"
)

// Command is a started command. Its methods may be called from any goroutine.
type Command struct {
	spec   Spec
	shim   *shim
	order  order
	tty    *terminal // nil without Pty
	output *pump
	desk   *socket.Desk // nil without Serve

	releaseOnce sync.Once
	released    chan struct{}
	leases      chan time.Duration // to send; holds the latest only
	overOnce    sync.Once
	over        chan struct{} // closed when the lease has ended while the command was there
	stops       chan error    // to run; holds the first cause only
	done        chan struct{} // closed when result is final
	result      Result        // written by run before done is closed
}

func newCommand(spec Spec, sh *shim, stage *stageOrder, sink Sink) (*Command, error) {
	c := &Command{
		spec: spec, shim: sh,
		released: make(chan struct{}),
		leases:   make(chan time.Duration, 1),
		over:     make(chan struct{}),
		stops:    make(chan error, 1),
		done:     make(chan struct{}),
	}
	if spec.Pty != nil {
		tty, err := openTerminal(*spec.Pty)
		if err != nil {
			return nil, err
		}
		c.tty = tty
		stage.TTY = tty.path
	}

	text, err := json.Marshal(stage)
	if err != nil {
		c.tty.close()
		return nil, err
	}
	c.order = spec.order(text)
	if c.output, err = startPump(c.sources(), sink); err != nil {
		c.tty.close()
		return nil, err
	}
	if spec.Serve != nil {
		c.desk = socket.Open(sh.socket, spec.Serve)
	} else {
		_ = sh.socket.Close()
	}
	return c, nil
}

// order translates the times of a Spec for the shim.
func (s *Spec) order(stage json.RawMessage) order {
	bound := s.Bound
	if bound <= 0 {
		bound = defaultBound
	}
	return order{
		Stage:  stage,
		Grace:  min(orDefault(s.Grace, defaultGrace), bound/2),
		Linger: orDefault(s.Linger, defaultLinger),
		Bound:  bound * 3 / 4, // the rest is for us, if the shim fails
	}
}

// Identity names the shim of the command, to be recorded before Release.
func (c *Command) Identity() tree.Identity { return c.shim.id }

// Release lets the command run. Only the first call counts, and only if the
// command was not stopped before.
func (c *Command) Release() {
	c.releaseOnce.Do(func() { close(c.released) })
}

// Stop ends the command and everything it started. It does not wait; Wait does.
// The cause is kept in the Result.
func (c *Command) Stop(cause error) {
	select {
	case c.stops <- cause:
	default: // it is being stopped already
	}
}

// Done is closed when the command has ended and its output was delivered.
func (c *Command) Done() <-chan struct{} { return c.done }

// Wait returns the end of the command. When it returns, no process of the
// command is left (or Result.Err tells) and the sink will not be called again.
func (c *Command) Wait() Result {
	<-c.done
	return c.result
}

// writeLimit is how long Write waits for a command that does not read.
const writeLimit = time.Second

// Write sends input to the command's terminal. Without one it is an error. If the
// command does not read and the terminal is full, it gives up with
// os.ErrDeadlineExceeded and says how much was taken.
func (c *Command) Write(p []byte) (int, error) {
	if c.tty == nil {
		return 0, errNoTerminal
	}
	_ = c.tty.master.SetWriteDeadline(time.Now().Add(writeLimit)) // fails when it is closed, which Write says
	return c.tty.master.Write(p)
}

// Input returns the writing end of the pipe that is the command's standard input,
// nil without Spec.Input. Closing it is the end of the input; the end of the command
// closes it as well. A Write blocks while the command does not read, until then.
func (c *Command) Input() io.WriteCloser {
	if c.shim.stdin == nil {
		return nil
	}
	return c.shim.stdin
}

// Resize tells the command's terminal its size. Without one it is an error.
func (c *Command) Resize(w Winsize) error {
	if c.tty == nil {
		return errNoTerminal
	}
	return c.tty.resize(w)
}

// run owns the command from Start to its end.
func (c *Command) run(ctx context.Context) {
	defer close(c.done)
	go c.send()
	w := &watch{Command: c}
	w.run(ctx)
	_ = c.shim.control.Close() // ends send, whatever it is at
	c.desk.Close()
	c.result = w.result()
	c.tty.closeSlave() // now no process has it open, and reading comes to its end
	c.output.finish(drainLimit)
	closeFiles(c.shim.stdin, c.shim.stdout, c.shim.stderr) // with a terminal they were not read
	c.tty.close()
}

// sources is where output comes from.
func (c *Command) sources() []source {
	if c.tty != nil {
		return []source{{Stdout, c.tty.master}}
	}
	return []source{{Stdout, c.shim.stdout}, {Stderr, c.shim.stderr}}
}

// send gives the shim its orders. It ends when the control pipe is closed.
func (c *Command) send() {
	to := json.NewEncoder(c.shim.control)
	if to.Encode(c.order) != nil {
		return
	}

	select {
	case <-c.released:
	case <-c.over: // without a release the shim takes it for the end
	case <-c.done:
		return
	}
	next, over := release{Release: true}, c.over
	if c.isOver() {
		next, over = release{Until: leaseOver}, nil
	}
	for to.Encode(next) == nil {
		select {
		case <-over:
			next, over = release{Until: leaseOver}, nil
		case until := <-c.leases:
			next = release{Until: until}
		case <-c.done:
			return
		}
	}
}

// isOver reports whether the lease has ended while the command was there.
func (c *Command) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// watch is what run knows about its command. Only run touches it.
type watch struct {
	*Command
	began       time.Time // zero before release
	timeout     *time.Timer
	giveUpTimer *time.Timer // after it the shim is given up
	reserving   *time.Timer // nil before release

	stopping bool
	gaveUp   bool
	end      Result      // flags and cause
	failed   *failure    // from the shim
	exit     *exitStatus // from the shim
	found    int         // from the shim: how many it is ending
	gone     *aftermath  // from the shim
	idle     bool        // the shim says that nothing ran
	stormed  int         // how many were killed without the shim
}

// run returns when the shim is dead, or still busy with a storm when the bound is over: no caller
// can end that better.
func (w *watch) run(ctx context.Context) {
	w.timeout, w.giveUpTimer = stoppedTimer(), stoppedTimer()
	defer w.timeout.Stop()
	defer w.giveUpTimer.Stop()
	released, cancelled := w.released, ctx.Done()
	for {
		select {
		case <-released:
			released = nil
			w.begin()
		case <-cancelled:
			cancelled = nil
			w.stop(Result{Stopped: true, Cause: context.Cause(ctx)})
		case cause := <-w.stops:
			w.stop(Result{Stopped: true, Cause: cause})
		case <-w.timeout.C:
			w.stop(Result{TimedOut: true})
		case <-w.giveUpTimer.C:
			w.gaveUp = true
			if w.found >= tree.Many { // it is at work, and goes on without us
				go w.shim.drain()
				return
			}
			_ = w.shim.process.Kill()
		case r, ok := <-w.shim.reports:
			if !ok {
				return
			}
			w.hear(r)
		}
	}
}

// stoppedTimer returns a timer that has not fired and will not before Reset.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (w *watch) begin() {
	w.began = time.Now()
	w.reserving = time.AfterFunc(reserveDelay, reserveOwnThreads)
	w.shim.wake() // it may have been halted while it waited
	if w.spec.Timeout > 0 {
		w.timeout.Reset(w.spec.Timeout)
	}
}

// stop begins the end. Only the first reason counts, and none if the command had
// ended by itself.
func (w *watch) stop(why Result) {
	if w.stopping {
		return
	}
	w.stopping = true
	if w.exit == nil {
		w.end = why
	}
	_ = w.shim.control.Close()
	w.shim.wake()
	w.stormed = tree.EndStorm(w.shim.id)
	w.giveUpTimer.Reset(w.order.Bound + w.reserve())
}

// reserve is the part of the bound that is left when the shim had its own, split
// in two: waiting for its answer, and ending the tree without it.
func (w *watch) reserve() time.Duration { return w.order.Bound / 6 }

// hear notes what the shim says.
func (w *watch) hear(r report) {
	switch {
	case r.Failed != nil:
		w.failed = r.Failed
	case r.Exited != nil:
		w.exit = r.Exited
		w.timeout.Stop()
		if !w.stopping {
			w.giveUpTimer.Reset(w.order.Linger + w.order.Bound + w.reserve())
		}
	case r.Ending != nil:
		w.found = r.Ending.Found
	case r.Gone != nil:
		w.gone = r.Gone
	case r.Idle != nil:
		w.idle = true
	}
}

// notReleased says why the command never ran.
func (w *watch) notReleased() error {
	select {
	case <-w.over:
		return ErrLeaseOver
	default:
		return ErrNotReleased
	}
}

// result makes up the account, after the shim's death.
func (w *watch) result() Result {
	if w.reserving != nil {
		w.reserving.Stop()
	}
	r := w.end
	r.ExitCode = -1
	if !w.began.IsZero() {
		r.Duration = time.Since(w.began)
	}
	if w.exit != nil {
		r.ExitCode = w.exit.Code
	}
	if w.exit != nil && w.exit.Signal != 0 {
		r.Signal = unix.SignalName(unix.Signal(w.exit.Signal))
	}
	if w.gone != nil {
		r.Killed = max(w.gone.Killed, w.stormed) // the shim may have found no process any more
		r.Ended = w.gone.Asked
	}
	switch {
	case w.failed != nil:
		r.Err = (*startError)(w.failed)
	case w.idle:
		r.Err = w.notReleased()
	case w.gone == nil || w.gone.Left > 0:
		w.endOrphans(&r)
	}
	return r
}

// endOrphans ends what a shim left that could not do its work.
func (w *watch) endOrphans(r *Result) {
	grace, bound := w.order.Grace, w.order.Bound
	if w.stopping || w.gaveUp {
		grace, bound = 0, w.reserve() // the time for being polite is used up
	}
	killed, left := tree.EndOrphans(w.shim.id, grace, bound)
	if w.gone == nil { // what the shim had found and not ended is among ours
		r.Killed = max(w.found-left, killed, w.stormed)
	} else {
		r.Killed += killed
	}
	if w.gone == nil && !w.gaveUp {
		r.Err = ErrShimLost
	}
	if left > 0 {
		r.Err = errors.Join(r.Err, fmt.Errorf("%d %w", left, ErrSurvivors))
	}
}
