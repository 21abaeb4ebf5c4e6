package web

import (
	"net/http"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// A link for one approval answers that one, by a form on its own page and not by looking at it.
func TestAnswerByLink(t *testing.T) {
	r := newRig(t)
	id := r.begin("work")
	a := newScreen()
	stream := r.view(id, a)
	a.until(t, stream, func() bool { return a.state != nil && a.state.Phase == "waiting" })
	code, err := r.access.NewAnswer(id, p.CallID{Turn: 1, Response: 1})
	if err != nil {
		t.Fatal(err)
	}
	form := func(q *http.Request) {
		q.Header.Del("Authorization")
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", r.http.URL)
	}
	var shown string
	foreign := func(q *http.Request) { form(q); q.Header.Set("Origin", "https://evil.example") }
	stranger := func(q *http.Request) { q.Header.Del("Authorization") }
	for range 2 { // looking answers nothing
		status, text, head := r.do("GET", "/answer/"+code, "", stranger)
		if status != http.StatusOK || !strings.Contains(text, "&lt;script&gt;") || strings.Contains(text, "<script") || !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Fatalf("%d %s", status, text)
		}
		_, rest, _ := strings.Cut(text, `name="shown" value="`)
		shown, _, _ = strings.Cut(rest, `"`)
	}
	for _, other := range []string{"", "&shown=x"} {
		if status, text, _ := r.do("POST", "/answer/"+code, "decision=approved"+other, form); status != http.StatusConflict || !strings.Contains(text, "not what the page showed") {
			t.Errorf("%q: %d %s", other, status, text)
		}
	}
	if status, _, _ := r.do("GET", "/answer/x"+code, "", stranger); status != http.StatusForbidden {
		t.Errorf("a wrong code: %d", status)
	}
	if status, _, _ := r.do("POST", "/answer/"+code, "decision=approved", foreign); status != http.StatusForbidden {
		t.Errorf("from another page: %d", status)
	}
	if status, _, _ := r.do("POST", "/answer/"+code, "decision=approved_for_session", form); status != http.StatusBadRequest {
		t.Errorf("for the session: %d", status)
	}
	if status, text, _ := r.do("POST", "/answer/"+code, "decision=approved&shown="+shown, form); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	a.until(t, stream, func() bool { return a.state.Phase == "ready" })
	if status, text, _ := r.do("POST", "/answer/"+code, "decision=approved", form); status != http.StatusConflict {
		t.Errorf("a second time: %d %s", status, text)
	}
	if status, text, _ := r.do("GET", "/answer/"+code, "", stranger); status != http.StatusOK || !strings.Contains(text, "No approval is pending") {
		t.Errorf("%d %s", status, text)
	}
}
