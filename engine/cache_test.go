package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	p "github.com/fermata-agent/fermata/protocol"
)

// Services read from their cache what a request has in common with the one before it. Over 40 calls, with a restart, and another model for a
// while, each request begins with all that the one before it had, on every wire; so more than nine tenths of what is
// sent can be read from there.
func TestRequestsBeginLikeTheOneBefore(t *testing.T) {
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			work := &worker{left: 20, size: func() int { return 2000 }}
			r := newLongRun(t, wire, modeltest.Limits{Window: 1_000_000}, p.Settings{}, work)
			model := func(name string) func() {
				return func() {
					if _, err := r.Submit(t.Context(), r.id, p.Configure{Overrides: p.Overrides{Model: &name}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, between := range []func(){func() {}, r.crash, model("other"), model("m"), func() {}} {
				between()
				r.completes("go")
				work.left = 5
			}
			requests := r.srv.Requests()
			if len(requests) < 40 {
				t.Fatalf("%d requests", len(requests))
			}
			var sent, cached int
			for i, req := range requests {
				for k, it := range req.Items {
					text, err := json.Marshal(it)
					if err != nil {
						t.Fatal(err)
					}
					sent += len(text)
					if i == 0 || k >= len(requests[i-1].Items) {
						continue
					}
					before, err := json.Marshal(requests[i-1].Items[k])
					if err != nil || string(before) != string(text) {
						t.Fatalf("request %d: item %d was\n%s\nand is\n%s", i+1, k, before, text)
					}
					cached += len(text)
				}
			}
			if share := float64(cached) / float64(sent); share < 0.9 {
				t.Errorf("%.1f %% could be read from a cache", 100*share)
			} else {
				t.Logf("%d requests: %.1f %% of what was sent was sent before", len(requests), 100*share)
			}
		})
	}
}
