package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	p "github.com/fermata-agent/fermata/protocol"
)

// submit hands an op to a conversation.
func (s *Server) submit(w http.ResponseWriter, r *request) {
	id, ok := conversation(w, r)
	if !ok {
		return
	}
	var raw json.RawMessage
	if !body(w, r, &raw) {
		return
	}
	var op p.OpJSON
	if err := json.Unmarshal(raw, &op); err != nil {
		refuse(w, http.StatusBadRequest, "op", err.Error())
		return
	}
	if _, ok := op.Op.(p.Undo); ok {
		refuse(w, http.StatusBadRequest, "op", "use …/undo: it also writes the files")
		return
	}
	if !s.matches(w, r, id, op.Op) {
		return
	}
	receipt, err := s.deliver(r, id, op.Op)
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, http.StatusOK, receipt)
}

// shownHeader holds the hash of what the sender of an answer saw.
const shownHeader = "Fermata-Shown"

// matches reports whether an answer is for what its sender saw, and answers by itself if it is not. A browser must say
// what it showed; a program may.
func (s *Server) matches(w http.ResponseWriter, r *request, id p.ConversationID, op p.Op) bool {
	said := r.Header.Get(shownHeader)
	var want string
	var err error
	switch op := op.(type) {
	case p.Approve:
		var q live.Question
		q, err = s.hub.Approval(r.Context(), id, op.Call)
		want = q.Shown
	case p.AnswerElicitation:
		want, err = s.hub.Elicitation(r.Context(), id, op.Call, op.Number)
	default:
		if said != "" {
			refuse(w, http.StatusBadRequest, "shown", shownHeader+" is for answers: the op "+fmt.Sprintf("%T", op)+" is none")
			return false
		}
		return true
	}
	if err != nil {
		failed(w, err)
		return false
	}
	return want == "" || wasShown(w, r, want) // without a question the engine says so
}

// wasShown reports whether a request repeats the hash of what is shown, and answers by itself if it does not.
func wasShown(w http.ResponseWriter, r *request, want string) bool {
	said := r.Header.Get(shownHeader)
	switch {
	case said == want || said == "" && !r.session.Browser():
		return true
	case said == "":
		refuse(w, http.StatusBadRequest, "shown", "a page must say what it showed: the header "+shownHeader+" is missing")
	default:
		refuse(w, http.StatusConflict, "shown", "nothing was done: this is not what the page showed when the button was pressed")
	}
	return false
}

// clientName is what events say of who caused them.
const clientName = "web"

// deliver submits an op. Its key becomes the op's name, by which its conversation knows it, in whichever process: one that
// was recorded is not carried out again, so that a client whose connection broke can safely send it again.
func (s *Server) deliver(r *request, id p.ConversationID, op p.Op) (p.Receipt, error) {
	// An op that has been received is carried out, whether or not the client waits for the answer.
	ctx := engine.WithClient(context.WithoutCancel(r.Context()), engine.Client{Name: clientName, Op: opName(r)})
	return s.o.Engine.Submit(ctx, id, op)
}

// keyHeader names a request, so that it is carried out once, however often it is sent.
const keyHeader = "Idempotency-Key"

// uniqueKey is how long a key must be to be taken for one that no other client uses, such as a UUID.
const uniqueKey = 20

// opName makes the name of an op from the key of its request. A short key counts for its session only.
func opName(r *request) string {
	key := r.Header.Get(keyHeader)
	if key == "" {
		return ""
	}
	if len(key) < uniqueKey {
		key = r.session.ID + " " + key
	}
	sum := sha256.Sum256([]byte(key))
	return "web-" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// A begun request makes a conversation, which no journal knows the request by yet.
type begun struct {
	at   time.Time
	done chan struct{} // closed when it was answered
	id   p.ConversationID
	err  error
}

// keyTTL is how long a key of a begun request is remembered.
const keyTTL = 10 * time.Minute

// once makes a conversation once for each key.
func (s *Server) once(r *request, make func(context.Context) (p.ConversationID, error)) (p.ConversationID, error) {
	ctx := context.WithoutCancel(r.Context())
	name := opName(r)
	if name == "" {
		return make(ctx)
	}
	b, first := s.begun(r.URL.Path + " " + name)
	if first {
		b.id, b.err = make(ctx)
		close(b.done)
	}
	select {
	case <-b.done:
		return b.id, b.err
	case <-r.Context().Done():
		return "", context.Cause(r.Context())
	}
}

// begun returns the request of a name, and whether it is new. Old ones are forgotten.
func (s *Server) begun(name string) (b *begun, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.made[name]; b != nil {
		return b, false
	}
	b = &begun{at: time.Now(), done: make(chan struct{})}
	maps.DeleteFunc(s.made, func(_ string, old *begun) bool { return b.at.Sub(old.at) > keyTTL })
	s.made[name] = b
	return b, true
}
