package terminal

import (
	"io"
	"time"
)

// A writer writes to the terminal, one piece at a time, beside the loop.
type writer struct {
	work chan []byte
	done chan struct{} // one for each piece
	busy bool          // a piece is on its way; the loop's
}

func newWriter(out io.Writer) *writer {
	w := &writer{work: make(chan []byte, 1), done: make(chan struct{}, 1)}
	go func() { // ends with last, or never, if the terminal takes nothing any more
		for data := range w.work {
			// A terminal that is gone is noticed by the reader of its keys.
			_, _ = out.Write(data)
			w.done <- struct{}{}
		}
	}()
	return w
}

// write writes a piece. It must not be called while one is on its way.
func (w *writer) write(data []byte) {
	w.busy = true
	w.work <- data
}

// last writes a piece and waits for it, within a bound.
func (w *writer) last(data []byte) {
	bound := time.NewTimer(writeTime)
	defer bound.Stop()
	if w.busy {
		select {
		case <-w.done:
			w.busy = false
		case <-bound.C:
			return
		}
	}
	if len(data) == 0 {
		return
	}
	w.write(data)
	select {
	case <-w.done:
		w.busy = false
	case <-bound.C:
	}
}
