package web

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	p "github.com/fermata-agent/fermata/protocol"
)

var shownAttr = regexp.MustCompile(`data-shown="([^"]*)"`)

// asked begins a conversation whose turn waits for an approval, and returns the hash of what is shown of it.
func (r *rig) asked(prompt string) (id p.ConversationID, shown string, s *screen, stream *reader) {
	r.t.Helper()
	id = r.begin(prompt)
	s = newScreen()
	stream = r.view(id, s)
	s.until(r.t, stream, func() bool { return s.state != nil && s.state.Phase == "waiting" })
	m := shownAttr.FindStringSubmatch(s.state.Dock.Approvals)
	if m == nil {
		r.t.Fatalf("no hash in %s", s.state.Dock.Approvals)
	}
	return id, m[1], s, stream
}

// An answer is taken only for what its sender saw: two conversations have the same turn, call and command, and the answer to
// the question of one is refused by the other.
func TestAnAnswerIsForWhatWasShown(t *testing.T) {
	r := newRig(t)
	a, shownA, sa, streamA := r.asked("work")
	b, shownB, _, _ := r.asked("work")
	if shownA == shownB {
		t.Fatal("two conversations show the same")
	}
	page := r.browser(access.Everything)
	const yes = `{"kind":"approve","body":{"call":"1.1.0","decision":"approved"}}`
	answer := func(id p.ConversationID, shown string, browser bool) (int, string) {
		t.Helper()
		status, text, _ := r.do("POST", "/api/v1/conversations/"+string(id)+"/ops", yes, func(q *http.Request) {
			if shown != "" {
				q.Header.Set(shownHeader, shown)
			}
			if browser {
				page.sign(q)
			}
		})
		return status, text
	}
	for _, tt := range []struct {
		name    string
		shown   string
		browser bool
		want    int
	}{
		{"what the other conversation shows", shownA, false, http.StatusConflict},
		{"what the other conversation shows, from a page", shownA, true, http.StatusConflict},
		{"nothing, from a page", "", true, http.StatusBadRequest},
		{"nonsense", "x", false, http.StatusConflict},
	} {
		if status, text := answer(b, tt.shown, tt.browser); status != tt.want || !strings.Contains(text, `"code":"shown"`) {
			t.Errorf("%s: %d %s", tt.name, status, text)
		}
	}
	if status, text := answer(a, shownA, true); status != http.StatusOK {
		t.Errorf("the answer of a page: %d %s", status, text)
	}
	sa.until(t, streamA, func() bool { return sa.state.Phase == "ready" })
	var snap p.Snapshot
	r.must("GET", "/api/v1/conversations/"+string(b), "", &snap)
	if len(snap.PendingApprovals) != 1 {
		t.Errorf("the other conversation has %d approvals pending", len(snap.PendingApprovals))
	}
	if status, text := answer(b, "", false); status != http.StatusOK { // a program may leave it out
		t.Errorf("the answer of a program: %d %s", status, text)
	}
}

// An undo is carried out only if it would do what was shown.
func TestAnUndoIsForWhatWasShown(t *testing.T) {
	r := newRig(t)
	id := string(r.begin("hi"))
	diff := "one"
	r.server.o.Undo = func(context.Context, p.ConversationID, p.TurnID) (*app.Undo, error) {
		return &app.Undo{Turn: 1, Diff: diff}, nil
	}
	var was undoAnswer
	r.must("GET", "/api/v1/conversations/"+id+"/undo", "", &was)
	diff = "another"
	status, text, _ := r.do("POST", "/api/v1/conversations/"+id+"/undo", `{"turn":1}`, set(shownHeader, was.Shown))
	if status != http.StatusConflict || !strings.Contains(text, `"code":"shown"`) {
		t.Errorf("%d %s", status, text)
	}
}

// A conversation is made once for each key, and its first message is sent once.
func TestAConversationIsMadeOnce(t *testing.T) {
	r := newRig(t)
	key := set(keyHeader, "0a5bbd4e-0000-4000-8000-000000000000")
	var made [2]createAnswer
	var forks [2]createAnswer
	for i := range made {
		_, text, _ := r.do("POST", "/api/v1/conversations", `{"cwd":"/w","prompt":"hi"}`, key)
		if err := json.Unmarshal([]byte(text), &made[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range forks {
		_, text, _ := r.do("POST", "/api/v1/conversations/"+string(made[0].ID)+"/fork", `{"up_to":0}`, key)
		if err := json.Unmarshal([]byte(text), &forks[i]); err != nil {
			t.Fatal(err)
		}
	}
	if made[0].ID != made[1].ID || forks[0].ID != forks[1].ID || made[0].ID == forks[0].ID {
		t.Errorf("made %v, forked %v", made, forks)
	}
	if made[0].Receipt.Input != made[1].Receipt.Input {
		t.Errorf("receipts %v, then %v", made[0].Receipt, made[1].Receipt)
	}
}
