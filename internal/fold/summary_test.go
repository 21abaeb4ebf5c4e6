package fold

import (
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// The summary of a turn says how long it took, also if its process did not see the start.
func TestTurnTimes(t *testing.T) {
	s := New()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Evolve(p.Event{Seq: 1, Time: at, Body: &p.ConversationStarted{ID: "c"}})
	s.Evolve(p.Event{Seq: 2, Turn: 1, Time: at.Add(time.Second), Body: &p.TurnStarted{}})
	saved, err := s.Save()
	if err != nil {
		t.Fatal(err)
	}
	s, err = Restore(saved)
	if err != nil {
		t.Fatal(err)
	}
	s.Evolve(p.Event{Seq: 3, Turn: 1, Time: at.Add(time.Minute), Body: &p.TurnEnded{Reason: p.Completed}})
	if s.Summary.Took != 59*time.Second || !s.Summary.Began.Equal(at.Add(time.Second)) {
		t.Errorf("it began at %v and took %v", s.Summary.Began, s.Summary.Took)
	}
}
