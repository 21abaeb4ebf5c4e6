package journal

import (
	"context"
	"testing"
)

type noBackend struct{}

func (noBackend) Appended()      {}
func (noBackend) Wrote(_, _ int) {}
func (noBackend) Old(context.Context, uint64, uint64, int) ([]Record, error) {
	return nil, nil
}

// Where text is held, a follower sees what the backend has, and all once nothing is
// saved any more.
func TestHeldTextIsShownWhenItIsSaved(t *testing.T) {
	l := NewLog(LogOptions{HoldText: true})
	l.SetBackend(noBackend{})
	f := &follower{log: l}
	s := l.Open("s")
	s.Write("1.1.0", "message", "first")
	seen := func(want string) {
		t.Helper()
		_, chunks, _, _ := f.poll(t.Context())
		got := ""
		for _, c := range chunks {
			got += c.Text
		}
		if got != want {
			t.Errorf("saw %q, want %q", got, want)
		}
	}
	seen("")
	taken := l.TakeText()
	s.Write("1.1.0", "message", " second")
	seen("")
	l.SaveText(taken)
	seen("first")
	l.Fail(ErrClosed)
	seen(" second")
}
