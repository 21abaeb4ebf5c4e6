package tool

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/protocol"
)

// A session is a command that may outlive the call that started it. A goroutine
// of its own takes what the command prints, so that a call can read it while it
// comes, and ends when nothing of the command runs any more.
type session struct {
	cmd     *proc.Command
	command []string
	tty     bool
	box     *sandbox.Confinement // nil: not confined
	began   time.Time
	chunks  chan chunk            // what it prints; taken by run
	asks    chan reading          // of calls; taken by run
	done    chan struct{}         // closed when the rest is final
	end     proc.Result           // final
	since   *capture.Capture      // what it printed as a background command; final
	rest    chan *capture.Capture // after the end: what no call has read; holds one
	write   func(kind protocol.DeltaKind, text string)
	unread  *capture.Capture
	text    [2]decoder
	held    string // of a terminal: a carriage return at the end
	kept    bool   // it has become a background command
}

// A chunk is a piece of output.
type chunk struct {
	stream proc.Stream
	data   []byte
}

// sessionBytes is how much of the beginning and of the end of a background
// command's output is kept between two calls that read it. There may be many
// sessions, and one of each is kept after its end.
const sessionBytes = 512 << 10

func newCapture(n int) *capture.Capture { return &capture.Capture{Head: n, Tail: n} }

// A reading takes what was printed since the last one. With write set, what is
// printed from then on goes there.
type reading struct {
	write  func(kind protocol.DeltaKind, text string)
	answer chan *capture.Capture // has room for one
}

// startSession starts a command; it waits to be released.
func startSession(ctx context.Context, sp *proc.Spawner, spec proc.Spec, write func(protocol.DeltaKind, string)) (*session, error) {
	s := &session{
		chunks: make(chan chunk), asks: make(chan reading), done: make(chan struct{}), rest: make(chan *capture.Capture, 1),
		write: write, unread: newCapture(keptBytes), since: newCapture(sessionBytes), tty: spec.Pty != nil,
	}
	// The end of a call or of its turn does not end it: whoever owns it does.
	cmd, err := sp.Start(context.WithoutCancel(ctx), spec, func(stream proc.Stream, b []byte) {
		s.chunks <- chunk{stream, bytes.Clone(b)}
	})
	if err != nil {
		return nil, err
	}
	s.cmd, s.began = cmd, time.Now()
	go s.run() // ended by the end of the command; waited for through done
	return s, nil
}

func (s *session) run() {
	for {
		select {
		case c := <-s.chunks:
			s.put(c.stream, s.text[c.stream].decode(c.data), false)
		case a := <-s.asks:
			if a.write != nil {
				s.write, s.kept = a.write, true
			}
			a.answer <- s.take()
		case <-s.cmd.Done():
			s.put(proc.Stderr, s.text[proc.Stderr].rest(), true)
			s.put(proc.Stdout, s.text[proc.Stdout].rest(), true)
			s.end = s.cmd.Wait()
			s.rest <- s.take()
			close(s.done)
			return
		}
	}
}

// put passes a text on. A terminal's line ends are made ours; one that may be
// half of a line end waits for what follows it.
func (s *session) put(stream proc.Stream, text string, last bool) {
	if s.tty {
		text = strings.ReplaceAll(s.held+text, "\r\n", "\n")
		s.held = ""
		if !last && strings.HasSuffix(text, "\r") {
			text, s.held = text[:len(text)-1], "\r"
		}
	}
	if text == "" {
		return
	}
	s.unread.Write(stream, []byte(text))
	if s.kept {
		s.since.Write(stream, []byte(text))
	}
	s.write(kinds[stream], text)
}

func (s *session) take() *capture.Capture {
	out := s.unread
	s.unread = newCapture(sessionBytes)
	return out
}

// read returns what was printed since the last read.
func (s *session) read(write func(protocol.DeltaKind, string)) *capture.Capture {
	a := reading{write, make(chan *capture.Capture, 1)}
	select {
	case s.asks <- a:
		return <-a.answer
	case <-s.done:
	}
	select {
	case last := <-s.rest:
		return last
	default:
		return &capture.Capture{}
	}
}

// ended reports whether nothing of it runs any more.
func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// await waits until the command has ended, the time is over or ctx ends.
func (s *session) await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Stop ends it and everything it started.
func (s *session) Stop(cause error) { s.cmd.Stop(cause) }

// Wait returns how it ended, with what it printed as a background command.
func (s *session) Wait() (protocol.CommandResult, bool) {
	<-s.done
	r := result(s.end)
	captured(&r, s.since)
	return r, s.end.Stopped || s.end.Ended
}

// result is how a command ended, without what it printed.
func result(r proc.Result) protocol.CommandResult {
	return protocol.CommandResult{
		ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Killed: r.Killed, Elapsed: r.Duration,
	}
}

// left says which processes could not be ended, because they hang in the kernel
// or have the rights of another user.
func left(r proc.Result) string {
	if errors.Is(r.Err, proc.ErrSurvivors) {
		return r.Err.Error() + "\n"
	}
	return ""
}
