package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// A progress notifies the client of a call, if it asks for that, that the call is alive: with
// each event, and when there is none for long. Clients give up on one that is silent.
type progress struct {
	s     *Server
	ctx   context.Context // ends when the call is cancelled: then nothing more is sent
	token json.RawMessage // nil: it is not asked for

	mu   sync.Mutex // held while it is sent, so that the numbers arrive in order
	sent int        // how often; guarded by mu
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress int             `json:"progress"`
	Message  string          `json:"message"`
}

// silence is how long a client hears nothing at most: far less than the minute that clients
// of the official libraries wait.
const silence = 15 * time.Second

func (s *Server) newProgress(ctx context.Context, in callParams) *progress {
	pr := &progress{s: s, ctx: ctx, token: in.Meta.ProgressToken}
	if string(pr.token) == "null" { // as clients write what they leave out
		pr.token = nil
	}
	return pr
}

func (pr *progress) send(message string) {
	if pr.token == nil {
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.sent++
	_ = pr.s.conn.Notify(pr.ctx, "notifications/progress", progressParams{pr.token, pr.sent, message}) // if it fails no caller waits for it
}

// beat reports that the call is alive, until the function that it returns is called.
func (pr *progress) beat() (stop func()) {
	if pr.token == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		tick := time.NewTicker(silence)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = pr.s.o.Panicked.Run(func() { pr.send("working") }) // the call goes on
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); <-done }
}
