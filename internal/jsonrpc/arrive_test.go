package jsonrpc

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// Requests that come in one write have all arrived when the handler of the first one begins; they leave when they
// were answered. Those that are refused never arrive.
func TestRequestsArriveTogether(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var arrived, left []string
			seen := make(chan []string, 10)
			count := Handle("count", func(_ context.Context, r *Request, in echoParams) (string, error) {
				if r.Arrived != in.Text {
					t.Errorf("%s arrived as %v", in.Text, r.Arrived)
				}
				seen <- slices.Clone(arrived)
				return "", nil
			}).InLane(func(json.RawMessage) string { return "one" })
			w := serve(t, Options{MaxCalls: 3, Methods: []Method{echo, count.Arriving(func(params json.RawMessage) (any, func()) {
				var in echoParams
				if err := json.Unmarshal(params, &in); err != nil {
					t.Error(err)
				}
				arrived = append(arrived, in.Text)
				return in.Text, func() { left = append(left, in.Text) }
			})}})
			request := func(id string) string {
				return `{"id":"` + id + `","method":"count","params":{"text":"` + id + `"}}`
			}
			w.send(request("a") + "\n" + request("b") + "\n" + `{"id":"n","method":"none"}` + "\n" + request("b") + "\n" + request("c") + "\n" + request("too many"))
			var answers []string
			for range 6 {
				line, err := w.out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				answers = append(answers, line)
			}
			if text := strings.Join(answers, ""); strings.Count(text, `"result":""`) != 3 || !strings.Contains(text, "in use") || !strings.Contains(text, "more than 3") {
				t.Errorf("answered: %s", text)
			}
			synctest.Wait()
			for range 3 {
				if got := strings.Join(<-seen, " "); got != "a b c" {
					t.Errorf("when a handler began there were %s", got)
				}
			}
			if got := strings.Join(left, " "); got != "a b c" {
				t.Errorf("left: %s", got)
			}
		})
	}
}
