package exec

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/follow"
	p "github.com/fermata-agent/fermata/protocol"
)

// held begins a turn that waits an hour for a limit, and returns the conversation as it is then.
func held(t *testing.T, e *enginetest.Engine) engine.Snapshot {
	t.Helper()
	id, err := e.Create(t.Context(), p.Settings{Cwd: "/w", OnLimit: p.OnLimitResume})
	if err != nil {
		t.Fatal(err)
	}
	e.Must(id, p.UserTurn{Content: p.Text("go")})
	e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "used up", After: time.Hour})
	synctest.Wait()
	snap, err := e.Resume(t.Context(), id)
	if err != nil || snap.Hold == nil {
		t.Fatalf("hold %+v, %v", snap.Hold, err)
	}
	return snap
}

// A hold whose limit has passed ends by itself. A run that was to end it follows the turn all the
// same, also if the turn is over by then, and an interrupt reaches it.
func TestTryNowFollowsATurnThatContinues(t *testing.T) {
	for name, tt := range map[string]struct {
		json  bool
		early bool // the turn is over before the run begins
		stop  bool
		want  string
	}{
		"it runs":        {want: "finished\n"},
		"it is over":     {early: true, want: "finished\n"},
		"lines of JSON":  {json: true, want: `"text":"finished"`},
		"it is stopped":  {stop: true},
		"JSON, and over": {json: true, early: true, want: `{"type":"turn.completed"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginetest.New(t, enginetest.Options{})
				snap := held(t, e)
				time.Sleep(2 * time.Hour)
				request := e.Request()
				if tt.early {
					request.Answer("finished")
					synctest.Wait()
				}
				r := &run{done: make(chan struct{}), e: e, id: snap.ID}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					defer close(r.done)
					r.end, r.failed = Run(ctx, e, Options{
						Request: Request{Conversation: snap.ID, TryNow: &p.TryNow{}, Held: follow.Held{Turn: snap.Turn, Last: snap.Last}},
						Output:  Output{JSON: tt.json, Out: &r.out, Err: &r.err},
					})
				}()
				synctest.Wait()
				switch {
				case tt.stop:
					cancel()
				case !tt.early:
					request.Answer("finished")
				}
				<-r.done
				reason := p.Completed
				if tt.stop {
					reason = p.Interrupted
				}
				if r.failed != nil || r.end.End.Reason != reason {
					t.Errorf("end %+v, error %v", r.end.End, r.failed)
				}
				if !strings.Contains(r.out.String(), tt.want) {
					t.Errorf("stdout %q, want %q", r.out.String(), tt.want)
				}
			})
		})
	}
}
