package web

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// A submission is an op that a client has sent under a key, and may send again: it is carried out once.
type submission struct {
	at      time.Time
	done    chan struct{} // closed when it was answered
	receipt p.Receipt
	err     error
}

// keyTTL is how long a key is remembered.
const keyTTL = 10 * time.Minute

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
	receipt, err := s.once(r, id, op.Op)
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, http.StatusOK, receipt)
}

// once submits an op. One that was sent before under the same key gets the answer of then, so that a client
// whose connection broke can safely send it again.
func (s *Server) once(r *request, id p.ConversationID, op p.Op) (p.Receipt, error) {
	key := r.Header.Get("Idempotency-Key")
	// An op that has been received is carried out, whether or not the client waits for the answer.
	ctx := context.WithoutCancel(r.Context())
	if key == "" {
		return s.o.Engine.Submit(ctx, id, op)
	}
	sub, first := s.submission(r.session.ID + " " + string(id) + " " + key)
	if first {
		sub.receipt, sub.err = s.o.Engine.Submit(ctx, id, op)
		close(sub.done)
	}
	select {
	case <-sub.done:
		return sub.receipt, sub.err
	case <-r.Context().Done():
		return p.Receipt{}, context.Cause(r.Context())
	}
}

// submission returns the one of a key, and whether it is new. Old ones are forgotten.
func (s *Server) submission(key string) (sub *submission, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.sent[key]; sub != nil {
		return sub, false
	}
	sub = &submission{at: time.Now(), done: make(chan struct{})}
	maps.DeleteFunc(s.sent, func(_ string, old *submission) bool { return sub.at.Sub(old.at) > keyTTL })
	s.sent[key] = sub
	return sub, true
}
