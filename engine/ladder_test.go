package engine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	p "github.com/fermata-agent/fermata/protocol"
)

// What a service refuses is taken out of the history, people are told, and this turn and
// the one after it are answered.
func TestRefusedItems(t *testing.T) {
	const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	for _, tt := range []struct {
		wire, name string
		refuses    func(raw string) bool
		message    string
	}{
		{"responses", "reasoning", func(raw string) bool { return strings.Contains(raw, "encrypted_content\":\"secret") }, "The encrypted content gAAA could not be verified."},
		{"anthropic", "thinking", func(raw string) bool { return strings.Contains(raw, `"thinking":"hm"`) }, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"responses", "images", func(raw string) bool { return strings.Contains(raw, "input_image") }, "image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"},
		{"chat", "images", func(raw string) bool { return strings.Contains(raw, "image_url") }, "unknown variant `image_url`, expected `text`"},
		{"anthropic", "images", func(raw string) bool { return strings.Contains(raw, `"type":"image"`) }, "Could not process image"},
	} {
		t.Run(tt.wire+"/"+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLongRun(t, tt.wire, modeltest.Limits{Window: 1 << 20}, p.Settings{}, &worker{})
				defer r.close()
				strict := false
				r.srv.Otherwise(modeltest.From(func(req *modeltest.Request) modeltest.Reply {
					if strict && tt.refuses(string(req.Raw)) {
						return modeltest.Status(400, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, tt.message))
					}
					return modeltest.Respond(modeltest.Think("hm"), modeltest.Say("done"))
				}))
				image := p.UserTurn{Content: []p.Content{{Type: p.ContentText, Text: "look"}, {Type: p.ContentImage, ImageURL: pixel}}}
				if end, err := engine.RunTurn(t.Context(), r.Local, r.id, image, nil); err != nil || end.End.Reason != p.Completed {
					t.Fatal(end.End.Reason, err)
				}
				strict = true
				r.completes("and this?")
				n := len(r.srv.Requests())
				r.completes("and now?")
				if reduced := reducedParts(r); len(reduced) == 0 {
					t.Error("nothing was taken out")
				}
				if tt.name == "images" && len(r.srv.Requests()) != n+1 {
					t.Errorf("the turn after it was refused again: %d requests", len(r.srv.Requests())-n)
				}
			})
		})
	}
}

func reducedParts(r *longRun) (parts []p.HistoryPart) {
	for _, e := range r.events() {
		if b, ok := e.Body.(*p.HistoryReduced); ok {
			parts = append(parts, b.Part)
		}
	}
	return parts
}

// Between compactions each request begins with the one before, so that services can use
// what they have cached.
func TestRequestsBeginAlike(t *testing.T) {
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := &worker{size: func() int { return 2500 }}
				r := newLongRun(t, wire, modeltest.Limits{Window: 12_000}, p.Settings{ContextWindow: 12_000}, work)
				defer r.close()
				for range 3 {
					work.left = 15
					r.completes("go on")
				}
				all := r.srv.Requests()
				alike := 0
				for i := 1; i < len(all); i++ {
					before, now := all[i-1], all[i]
					if asksForSummary(before) || asksForSummary(now) {
						continue // part of a compaction
					}
					n := len(before.Items)
					if len(now.Items) < n || !reflect.DeepEqual(now.Items[:n], before.Items[:n]) {
						t.Errorf("request %d does not begin like the one before", i+1)
					}
					alike++
				}
				compactions := len(r.compactions())
				if compactions == 0 || alike < 40 {
					t.Errorf("%d requests looked at, %d compactions", alike, compactions)
				}
				t.Logf("%d alike, %d compactions", alike, compactions)
			})
		})
	}
}
