package exec

import (
	"io"

	p "github.com/fermata-agent/fermata/protocol"
)

// Follow returns what draws the events of a conversation on Out as they come, for
// somebody who looks on from elsewhere. It reports the first write that failed.
func Follow(o Options) func(p.Event) error {
	w := &errWriter{w: o.Out}
	o.Out, o.Err, o.ErrTerminal = w, w, o.OutTerminal
	pr := newPrinter(o)
	pr.all = true
	return func(e p.Event) error {
		pr.event(e)
		return w.failed
	}
}

// An errWriter remembers that a write failed.
type errWriter struct {
	w      io.Writer
	failed error
}

func (w *errWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if w.failed == nil {
		w.failed = err
	}
	return n, err
}
