package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

// A client whose servers are silent for minutes follows its turn to the end when they answer again: nothing is missing, and nothing
// is given twice.
func TestFollowerOutlastsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, &server.Options{})
		lag := &lagging{s: s}
		node := newMember(t, nats.Options{Connect: []natsgo.Option{natsgo.InProcessServer(s)}})
		client := newMember(t, nats.Options{Lease: time.Hour, Connect: []natsgo.Option{natsgo.InProcessServer(lag)}})
		runNode(t, node)
		sub := submission(t, client)
		go func() { // ends with the turn
			r := node.Request()
			for range 300 {
				r.Delta("word ")
				time.Sleep(time.Second)
			}
			r.Answer("done")
		}()
		receipt, err := sub.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		e := fleet.Started(client.c, fleet.Following{Receipt: receipt, Say: func(string) { said++ }})
		var text int64
		end, err := engine.RunTurn(t.Context(), e, sub.Work.Conversation, p.UserTurn{}, func(ev p.Event) {
			d, ok := ev.Body.(*p.Delta)
			if !ok {
				return
			}
			if d.Offset != text {
				t.Errorf("text at %d after %d bytes", d.Offset, text)
			}
			if before := text; before < 50 && before+int64(len(d.Text)) >= 50 {
				lag.stall(3 * time.Minute)
			}
			text += int64(len(d.Text))
		})
		if err != nil || end.End.Reason != p.Completed || said == 0 {
			t.Errorf("it ended as %q, %v; it was said %d times that the servers do not answer", end.End.Reason, err, said)
		}
	})
}
