package exec

import (
	"slices"

	"github.com/fermata-agent/fermata/internal/transcript"
)

// A callQueue keeps calls that run side by side apart on the screen: while one is shown, others wait until it has
// ended or asks something. A call that asks is shown at once.
type callQueue struct {
	current *transcript.Item   // what is shown; nil if that has ended
	waiting []*transcript.Item // in the order in which they began
	last    string             // the call whose command line was shown last
}

// waits reports whether a call has to wait, and remembers it then.
func (q *callQueue) waits(it *transcript.Item) bool {
	if q.current == nil || q.current == it || it.Status == transcript.Asking {
		return false
	}
	if !slices.Contains(q.waiting, it) {
		q.waiting = append(q.waiting, it)
	}
	return true
}

// show says that a call is shown now.
func (q *callQueue) show(it *transcript.Item) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w *transcript.Item) bool { return w == it })
	switch {
	case it.Status == transcript.Open:
		q.current = it
	case q.current == it:
		q.current = nil
	}
}

// next is the call that is shown next, nil if one is shown or none waits.
func (q *callQueue) next() *transcript.Item {
	if q.current != nil || len(q.waiting) == 0 {
		return nil
	}
	it := q.waiting[0]
	q.waiting = q.waiting[1:]
	return it
}
