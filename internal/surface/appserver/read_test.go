package appserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	p "github.com/fermata-agent/fermata/protocol"
)

// stateTurns are the turns of a thread in each state, after a first one that has completed.
var stateTurns = map[string][]string{
	"idle":                      nil,
	"requested":                 {"U2 inProgress; userMessage"},
	"streaming":                 {"U2 inProgress; userMessage; reasoning; agentMessage before"},
	"failed":                    {"U2 failed; userMessage"},
	"retrying":                  {"U2 inProgress; userMessage; agentMessage half"},
	"calling":                   {"U2 inProgress; userMessage"}, // what it does is not known yet
	"looking":                   {"U2 inProgress; userMessage"},
	"running":                   {"U2 inProgress; userMessage; commandExecution inProgress out\n"},
	"patching":                  {"U2 inProgress; userMessage; fileChange inProgress"},
	"calling a server":          {"U2 inProgress; userMessage; mcpToolCall inProgress"},
	"with a background command": {"U2 inProgress; userMessage; commandExecution inProgress"},
	"waiting for a command":     {"U2 inProgress; userMessage; commandExecution inProgress"},
	"waiting for a patch":       {"U2 inProgress; userMessage; fileChange inProgress"},
	"waiting for a tool":        {"U2 inProgress; userMessage; mcpToolCall inProgress"},
	"questioned":                {"U2 inProgress; userMessage"},
	"compacting":                {"U2 inProgress; contextCompaction"},
	"compacting in a turn":      {"U2 inProgress; userMessage; contextCompaction"},
	"held":                      {"U2 inProgress; userMessage"},
	"stopping a request":        {"U2 inProgress; userMessage"},
	"stopping a call":           {"U2 inProgress; userMessage; commandExecution inProgress out\n"},
	"steered":                   {"U2 inProgress; userMessage"},
	"queued":                    {"U2 inProgress; userMessage"},
	"replaced":                  {"U2 interrupted replaced; userMessage; agentMessage half", "U3 inProgress; userMessage"},
	"shell":                     {"U2 inProgress; commandExecution inProgress out\n"},
	"interrupted":               {"U2 interrupted interrupted; userMessage; agentMessage half"},
	"reverted":                  {"U3 inProgress; userMessage; agentMessage again"},
	"forked":                    {"U2 inProgress; userMessage; agentMessage in the copy"},
	"reviewing":                 {"U2 inProgress; enteredReviewMode; agentMessage so far so good"},
}

// reviewing is a state that only this server knows.
var reviewing = enginetest.TurnState{Name: "reviewing", Enter: func(t testing.TB, e *enginetest.Engine, id p.ConversationID) p.ConversationID {
	e.Must(id, p.UserTurn{Content: p.Text("look"), Ref: items.ReviewRef("changes")})
	e.Request().Message("so far so good")
	return id
}}

// A reading is a way to read a thread: what it returns of the turns, oldest first.
var readings = map[string]func(*client) []string{
	"thread/read": func(c *client) []string {
		return c.turns(c.result("thread/read", `{"threadId":"T","includeTurns":true}`)["thread"])
	},
	"thread/resume": func(c *client) []string {
		return c.turns(c.result("thread/resume", `{"threadId":"T"}`)["thread"])
	},
	"thread/turns/list": func(c *client) []string {
		for _, view := range []string{"", "summary", "notLoaded"} {
			c.result("thread/turns/list", fmt.Sprintf(`{"threadId":"T","itemsView":%q}`, view))
		}
		r := c.result("thread/turns/list", `{"threadId":"T","itemsView":"full","sortDirection":"asc"}`)
		return c.turns(map[string]any{"turns": r["data"]})
	},
	"thread/items/list": func(c *client) []string {
		var all []any
		for _, turn := range at(c.result("thread/read", `{"threadId":"T","includeTurns":true}`), "thread", "turns").([]any) {
			turn := turn.(map[string]any)
			r := c.result("thread/items/list", fmt.Sprintf(`{"threadId":"T","sortDirection":"asc","turnId":%q}`, turn["id"]))
			items := []any{}
			for _, entry := range r["data"].([]any) {
				items = append(items, at(entry, "item"))
			}
			turn["items"] = items
			all = append(all, turn)
		}
		return c.turns(map[string]any{"turns": all})
	},
}

// Lists and everything else that looks at a thread without its turns.
var lookings = map[string]string{
	"thread/list": `{}`, "thread/search": `{"searchTerm":"hi"}`, "thread/loaded/list": `{}`, "thread/queue/list": `{"threadId":"T"}`,
	"thread/backgroundTerminals/list": `{"threadId":"T"}`, "thread/goal/get": `{"threadId":"T"}`, "thread/fork": `{"threadId":"T"}`,
}

// A thread can be read in every way while its turn is in any state, all ways agree, and reading changes nothing: the turn
// ends as it would.
func TestEveryStateCanBeRead(t *testing.T) {
	for _, state := range append(enginetest.TurnStates(), reviewing) {
		t.Run(state.Name, func(t *testing.T) {
			turns, known := stateTurns[state.Name]
			if !known {
				t.Fatal("say in stateTurns what is read in this state")
			}
			inBubble(t, func(t *testing.T, x *site) {
				c := x.connect()
				c.start()
				c.turn("hi", "hello")
				c.id = state.Enter(t, x.e, c.id)
				synctest.Wait()
				want := append([]string{"U1 completed; userMessage; agentMessage hello"}, turns...)
				for method, read := range readings {
					reader := x.connect()
					reader.id = c.id
					if got := read(reader); strings.Join(got, "\n") != strings.Join(want, "\n") {
						t.Errorf("%s returns\n%s\nwant\n%s", method, strings.Join(got, "\n"), strings.Join(want, "\n"))
					}
				}
				for method, params := range lookings {
					reader := x.connect()
					reader.id = c.id
					reader.result(method, params)
				}
				readWithoutAnyEvent(t, x, c.id)
				_, _ = x.e.Submit(t.Context(), c.id, p.Interrupt{}) // if there is something to interrupt
				time.Sleep(time.Minute)                             // also one that cannot be stopped
				got := c.turns(c.result("thread/read", `{"threadId":"T","includeTurns":true}`)["thread"])
				if last := got[len(got)-1]; len(got) != len(want) || strings.Contains(last, "inProgress") {
					t.Errorf("at the end there is\n%s", strings.Join(got, "\n"))
				}
			})
		})
	}
}

// readWithoutAnyEvent reads a thread as if one of its records had been lost, for each of them.
func readWithoutAnyEvent(t *testing.T, x *site, id p.ConversationID) {
	t.Helper()
	var all []p.Event
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range x.e.Attach(ctx, id, 0, cancel) {
		if err != nil {
			break
		}
		all = append(all, e)
	}
	for lost := range all {
		for _, live := range []bool{false, true} {
			f := items.New(id)
			if live {
				f.Live()
			}
			for i, e := range all {
				if i != lost {
					f.Apply(e)
				}
			}
			if got := len(f.Turns()); got > 3 {
				t.Errorf("without event %d there are %d turns", lost, got)
			}
			f.Resend()
		}
	}
}
