package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A signalError is the cause of a context that a signal ended.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string {
	if sig, ok := e.sig.(syscall.Signal); ok {
		return "interrupted by " + unix.SignalName(sig)
	}
	return fmt.Sprintf("interrupted by %v", e.sig)
}

// sameSignal is for how long after a signal another one means the same. timeout(1)
// sends its signal twice, to us and to our group; a terminal that hangs up and the shell in
// it both tell us; a wrapper passes on the Ctrl-C that the terminal sent to us as well.
const sameSignal = 200 * time.Millisecond

// StopSignals ends the context at the first SIGINT, SIGTERM or SIGHUP, and the program
// at one that comes later. The returned function tells which signal came first, nil if none
// did. A reader that goes away is an error of the write, not the end of us.
func StopSignals(ctx context.Context) (context.Context, func() os.Signal) {
	return StopSignalsThen(ctx, func() {})
}

// StopSignalsThen is StopSignals with something to do before a later signal ends the program.
func StopSignalsThen(ctx context.Context, last func()) (context.Context, func() os.Signal) {
	return StopSignalsBut(ctx, last, nil)
}

// StopSignalsBut is StopSignalsThen that calls hungUp, if that is not nil, for a SIGHUP instead.
func StopSignalsBut(ctx context.Context, last, hungUp func()) (context.Context, func() os.Signal) {
	return stopSignals(ctx, last, hungUp, Gentle{})
}

// Gentle is how a server ends at SIGTERM that is given time for it. The zero value gives it none.
type Gentle struct {
	Begin func()        // is called at the first SIGTERM
	Time  time.Duration // until that counts as a signal like any other; another signal does so at once
}

// StopSignalsGently is StopSignals with time to end at SIGTERM.
func StopSignalsGently(ctx context.Context, g Gentle) (context.Context, func() os.Signal) {
	return stopSignals(ctx, func() {}, nil, g)
}

// await returns the signal that ends the program.
func (g Gentle) await(ctx context.Context, signals <-chan os.Signal) os.Signal {
	sig := <-signals
	if g.Time <= 0 || sig != unix.SIGTERM {
		return sig
	}
	g.Begin()
	more := make(chan os.Signal, 1) // room for the one that counts: the time may be over first
	go func() { more <- another(signals) }()
	select {
	case sig = <-more:
	case <-time.After(g.Time):
	case <-ctx.Done():
	}
	return sig
}

func stopSignals(ctx context.Context, last, hungUp func(), g Gentle) (context.Context, func() os.Signal) {
	// Not ignored, which the editor and the notify program would inherit: taken, so that a
	// write fails and we live on.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	var first atomic.Pointer[signalError]
	signals := make(chan os.Signal, 2) // room for the two that matter
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	if hungUp == nil && !signal.Ignored(unix.SIGHUP) { // nohup means it
		signal.Notify(signals, unix.SIGHUP)
	}
	if hungUp != nil {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, unix.SIGHUP)
		go func() { // for as long as the program runs
			<-hangups
			hungUp()
		}()
	}
	go func() { // for as long as the program runs
		e := &signalError{g.await(ctx, signals)}
		first.Store(e)
		cancel(e)
		sig := another(signals)
		last()
		os.Exit(SignalCode(sig)) // what runs dies with us: see package proc
	}()
	return ctx, func() os.Signal {
		if e := first.Load(); e != nil {
			return e.sig
		}
		return nil
	}
}

// StoppedBy is err, or what to say and how to exit if a signal is what is behind it.
func StoppedBy(sig os.Signal, err error) error {
	if sig == nil || !errors.Is(err, context.Canceled) && !errors.As(err, new(*signalError)) {
		return err
	}
	return &ExitError{Code: SignalCode(sig), Err: &signalError{sig}}
}

// SignalCode is the exit code that tells which signal stopped us, as a shell
// gives it to a program that a signal has ended.
func SignalCode(s os.Signal) int {
	if sig, ok := s.(syscall.Signal); ok {
		return 128 + int(sig)
	}
	return ExitFailed
}

// another waits for a signal that means more than the one that has just come.
func another(signals <-chan os.Signal) os.Signal {
	over := time.Now().Add(sameSignal)
	for {
		if sig := <-signals; time.Now().After(over) {
			return sig
		}
	}
}
