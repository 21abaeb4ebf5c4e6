package exec

import (
	"fmt"
	"io"
	"strings"

	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Follow returns what draws the events of a conversation on Out as they come, for
// a client that looks on from elsewhere. It reports the first write that failed.
func Follow(o Output) func(p.Event) error {
	w := &errWriter{w: o.Out}
	o.Out, o.Err, o.ErrTerminal = w, w, o.OutTerminal
	pr := newPrinter(Options{Output: o})
	pr.all = true
	return func(e p.Event) error {
		pr.Event(e)
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

// Show draws a whole conversation, which has this id, on Out as it is now, with nothing left out.
func Show(o Output, id p.ConversationID, t *transcript.Transcript) error {
	w := &errWriter{w: o.Out}
	o.Out, o.Err, o.ErrTerminal = w, w, false
	pr := newPrinter(Options{Output: o})
	pr.all, pr.full = true, true
	for _, it := range t.Items {
		if it.Kind == transcript.Plan {
			pr.over[strings.TrimPrefix(it.ID, "p")] = true // the call that made it
		}
	}
	for _, it := range t.Items {
		if !pr.over[it.ID] {
			pr.text("\n")
			pr.draw(it)
			pr.flush()
		}
	}
	if t.Active {
		pr.line(fmt.Sprintf("\nturn %d has not ended", t.Turn))
	}
	for _, in := range t.Inputs {
		pr.line("\nnot delivered yet: " + p.Written(in.Content))
	}
	if text := hint.Returned(id, t.Undelivered()); text != "" {
		pr.line("\n" + text)
	}
	return w.failed
}
