package terminal

import (
	"context"
	"os"
	"os/signal"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/term"
	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
)

// escapeTime is how long an Esc may be the beginning of something else.
const escapeTime = 25 * time.Millisecond

// pauseTime is how long a reader is waited for that has been asked to stop.
const pauseTime = 500 * time.Millisecond

// A terminal is where keys come from. Without a file, as in tests, it has no modes and
// no size of its own.
type terminal struct {
	o      Options
	in     *os.File
	out    *os.File
	before *term.State // what it was like

	reader  cancelreader.CancelReader
	stop    context.CancelFunc
	stopped chan struct{} // closed when nothing is read any more
}

// open makes the terminal give keys as they are pressed.
func open(o Options) (*terminal, error) {
	t := &terminal{o: o}
	if f, ok := o.In.(*os.File); ok && term.IsTerminal(f.Fd()) {
		t.in = f
	}
	if f, ok := o.Out.(*os.File); ok && term.IsTerminal(f.Fd()) {
		t.out = f
	}
	return t, t.raw()
}

func (t *terminal) raw() error {
	if t.in == nil {
		return nil
	}
	before, err := term.MakeRaw(t.in.Fd())
	if err == nil && t.before == nil {
		t.before = before
	}
	return err
}

func (t *terminal) restore() {
	if t.before != nil {
		_ = term.Restore(t.in.Fd(), t.before) // it is gone, else
	}
}

// size is how large the screen is.
func (t *terminal) size() (width, height int) {
	if t.out != nil {
		if w, h, err := term.GetSize(t.out.Fd()); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// inputEnded says that there is nothing more to read.
type inputEnded struct{ err error }

// listen sends what is typed, and changes of the size, until pause.
func (t *terminal) listen(ctx context.Context, send func(tea.Msg)) {
	ctx, t.stop = context.WithCancel(ctx)
	t.stopped = make(chan struct{})
	reader, err := uv.NewCancelReader(t.o.In)
	if err != nil {
		close(t.stopped)
		go send(inputEnded{err}) // ends with ctx, at the latest
		return
	}
	t.reader = reader
	events := make(chan uv.Event)
	go func() { // ends when the reader is cancelled
		defer close(events)
		r := uv.NewTerminalReader(reader, uv.Environ(t.o.Env).Getenv("TERM"))
		r.EscTimeout = escapeTime
		if err := r.StreamEvents(ctx, events); err != nil && ctx.Err() == nil {
			send(inputEnded{err})
		}
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	go t.forward(ctx, events, resized, send)
}

// forward ends with the events.
func (t *terminal) forward(ctx context.Context, events <-chan uv.Event, resized chan os.Signal, send func(tea.Msg)) {
	defer close(t.stopped)
	defer signal.Stop(resized)
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if ctx.Err() == nil {
				send(message(e))
			}
		case <-resized:
			w, h := t.size()
			if ctx.Err() == nil {
				send(tea.WindowSizeMsg{Width: w, Height: h})
			}
		}
	}
}

// pause stops reading, so that another program can.
func (t *terminal) pause() {
	if t.reader == nil {
		return
	}
	t.stop()
	t.reader.Cancel()
	select {
	case <-t.stopped:
		_ = t.reader.Close()
	case <-time.After(pauseTime): // it cannot be cancelled: it ends with its next key
	}
	t.reader = nil
}

// message is an event as the widgets know it.
func message(e uv.Event) tea.Msg {
	switch e := e.(type) {
	case uv.KeyPressEvent:
		return tea.KeyPressMsg(e)
	case uv.KeyReleaseEvent:
		return tea.KeyReleaseMsg(e)
	case uv.PasteEvent:
		return tea.PasteMsg(e)
	case uv.MouseClickEvent:
		return tea.MouseClickMsg(e)
	case uv.MouseMotionEvent:
		return tea.MouseMotionMsg(e)
	case uv.MouseReleaseEvent:
		return tea.MouseReleaseMsg(e)
	case uv.MouseWheelEvent:
		return tea.MouseWheelMsg(e)
	case uv.FocusEvent:
		return tea.FocusMsg(e)
	case uv.BlurEvent:
		return tea.BlurMsg(e)
	case uv.BackgroundColorEvent:
		return tea.BackgroundColorMsg(e)
	case uv.ModeReportEvent:
		return tea.ModeReportMsg(e)
	}
	return nil
}
