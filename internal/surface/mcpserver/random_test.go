package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/surface/mcpserver/event"
	p "github.com/fermata-agent/fermata/protocol"
)

// A dice is a random source that goroutines share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// A chatterbox is a model that talks for a random while, and sometimes fails.
type chatterbox struct{ d *dice }

func (b chatterbox) Stream(ctx context.Context, _ model.Prompt, sink model.Sink) (model.End, error) {
	text := ""
	for range b.d.n(4) {
		select {
		case <-time.After(time.Duration(b.d.n(50)) * time.Millisecond):
		case <-ctx.Done():
			return model.End{}, context.Cause(ctx)
		}
		sink.Delta(0, p.DeltaMessage, "word ")
		text += "word "
	}
	if b.d.n(10) == 0 {
		return model.End{}, enginetest.Refused()
	}
	sink.Done(0, &p.AssistantMessage{Text: text + "end"})
	return model.End{}, nil
}

// A randomClient counts what it asks and what it is answered.
type randomClient struct {
	*client
	next      int
	asked     map[string]string // request id to what
	answered  map[string]int
	cancelled map[string]bool
	returned  map[string]bool     // request id to whether it was answered that its message was returned
	listened  map[string][]string // conversation to what its listener was told
	last      map[string]p.Seq    // request id to the last event's number
	turns     map[string]*toldTurn
}

// A toldTurn is a turn as calls are told of it.
type toldTurn struct {
	request      string // of the one call that is
	starts, ends int
}

func newRandomClient(t *testing.T, e *enginetest.Engine) *randomClient {
	return &randomClient{
		client: attach(t, e), asked: map[string]string{}, answered: map[string]int{}, cancelled: map[string]bool{}, returned: map[string]bool{},
		listened: map[string][]string{}, last: map[string]p.Seq{}, turns: map[string]*toldTurn{},
	}
}

func (c *randomClient) ask(method, params string) string {
	c.next++
	id := fmt.Sprint(c.next)
	c.asked[id] = method + " " + params
	c.send(`{"id":%s,"method":%q,"params":%s}`, id, method, params)
	return id
}

// hearAll reads everything that has come, and checks it.
func (c *randomClient) hearAll() {
	synctest.Wait()
	for len(c.lines) > 0 {
		line := <-c.lines
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Meta           eventMeta `json:"_meta"`
				ID             string
				Msg            event.Msg
				ConversationID string
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		switch {
		case m.Method == "":
			c.answered[bare(m.ID)]++
			c.returned[bare(m.ID)] = strings.Contains(line, "the message was not delivered")
		case strings.HasPrefix(m.Method, "codex/event/") && !m.Params.Msg.Delta():
			delete(m.Params.Msg, "model_context_window") // streams do not have it
			text, _ := json.Marshal(m.Params.Msg)
			c.listened[m.Params.ConversationID] = append(c.listened[m.Params.ConversationID], string(text))
		case m.Method == "codex/event":
			c.event(m.Params.Meta, line)
			c.turn(m.Params.Meta, m.Params.ID, m.Params.Msg, line)
		}
	}
}

// turn checks that a turn is told by one call, from its start to its end.
func (c *randomClient) turn(meta eventMeta, id string, m event.Msg, line string) {
	if id == "" {
		return
	}
	key := string(meta.ConversationID) + " " + id
	told := c.turns[key]
	if told == nil {
		told = &toldTurn{request: bare(meta.RequestID)}
		c.turns[key] = told
	}
	switch m.Type() {
	case "task_started":
		told.starts++
	case "task_complete", "turn_aborted":
		told.ends++
		defer func() { told.ends++ }() // what comes now comes too late
	}
	if c.cancelled[told.request] && m.Type() == "task_started" { // another call has taken over
		told.request, told.starts = bare(meta.RequestID), 1
	}
	if told.request != bare(meta.RequestID) || told.starts != 1 || told.ends > 1 {
		c.t.Errorf("turn %s, told by call %s, started %d times: %s", key, told.request, told.starts, line)
	}
}

// event checks that a call is told of its own conversation, in order, and only while it
// is not answered.
func (c *randomClient) event(meta eventMeta, line string) {
	id := bare(meta.RequestID)
	want := c.asked[id]
	if !strings.Contains(want, string(meta.ConversationID)) {
		c.t.Errorf("%s is told %s", want, line)
	}
	if c.answered[id] > 0 {
		c.t.Errorf("request %s was answered before %s", id, line)
	}
	if meta.Seq != 0 && meta.Seq < c.last[id] {
		c.t.Errorf("after event %d: %s", c.last[id], line)
	}
	c.last[id] = max(c.last[id], meta.Seq)
}

// step does something at random.
func (c *randomClient) step(d *dice, ids []string) {
	id := ids[d.n(len(ids))]
	switch d.n(7) {
	case 0, 1:
		mode := []string{"", `,"whenBusy":"steer"`, `,"whenBusy":"queue"`, `,"whenBusy":"replace"`}[d.n(4)]
		c.ask("tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"x"%s}}`, id, mode))
	case 2:
		c.ask("sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":"y"}}]}`, id))
	case 3:
		c.ask("interruptConversation", fmt.Sprintf(`{"conversationId":%q}`, id))
	case 4:
		c.ask("tools/call", fmt.Sprintf(`{"name":"conversationSendMessage","arguments":{"conversation_id":%q,"content":[{"type":"text","text":"z"}]}}`, id))
	case 5:
		c.ask("tools/call", fmt.Sprintf(`{"name":"conversationStream","arguments":{"conversation_id":%q}}`, id))
	case 6:
		victim := fmt.Sprint(1 + d.n(c.next+1)) // it may name nothing, or a listener, which goes on
		c.cancelled[victim] = true
		c.cancel(victim)
	}
}

// settled checks that every request was answered once, or cancelled.
func (c *randomClient) settled() {
	c.t.Helper()
	for id, what := range c.asked {
		if n := c.answered[id]; n > 1 || n == 0 && !c.cancelled[id] {
			c.t.Errorf("%d answers to request %s: %s", n, id, what)
		}
	}
	for key, told := range c.turns {
		if told.ends == 0 && !c.cancelled[told.request] && !c.returned[told.request] { // a call whose message was taken back is told no more
			c.t.Errorf("the end of turn %s was not told", key)
		}
	}
	for id := range c.answered {
		if c.asked[id] == "" {
			c.t.Errorf("an answer to %s, which nobody asked", id)
		}
	}
}

func TestRandomClients(t *testing.T) {
	for seed := range uint64(longtest.Default(25, 8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomRun(t, &dice{r: rand.New(rand.NewPCG(seed, 8))}) })
		})
	}
}

func randomRun(t *testing.T, d *dice) {
	e := enginetest.New(t, enginetest.Options{Config: func(cfg *engine.Config) {
		cfg.Model = native.Model(chatterbox{d})
	}})
	var ids []string
	for range 4 {
		ids = append(ids, string(e.Begin()))
	}
	clients := []*randomClient{newRandomClient(t, e), newRandomClient(t, e)}
	for _, c := range clients {
		for _, id := range ids {
			c.ask("addConversationListener", fmt.Sprintf(`{"conversationId":%q}`, id))
		}
		c.hearAll() // all listen before anything happens
	}
	var streamers []*streamer
	for _, id := range ids {
		streamers = append(streamers, newStreamer(t, e, id))
	}
	leaver := newRandomClient(t, e) // goes away in the middle
	for i := range 40 {
		for _, c := range clients {
			c.step(d, ids)
		}
		if i < 20 {
			leaver.step(d, ids)
		} else if i == 20 {
			leaver.in.Close()
			<-leaver.ended
			leaver.hearAll()
			leaver.settled()
		}
		time.Sleep(time.Duration(d.n(60)) * time.Millisecond)
		for _, c := range clients {
			c.hearAll()
		}
		for _, st := range streamers {
			st.step(d)
		}
	}
	time.Sleep(time.Minute) // what is queued runs
	for _, c := range clients {
		c.hearAll()
		c.settled()
	}
	story := sameStory(t, e, ids, clients)
	for _, st := range streamers {
		st.check(story[st.id])
	}
}

// A streamer streams one conversation, leaves, and comes back.
type streamer struct {
	*client
	id    string
	next  int
	told  []string   // by the stream it has: the state, then live events
	parts [][]string // by earlier ones
}

func newStreamer(t *testing.T, e *enginetest.Engine, id string) *streamer {
	st := &streamer{client: attach(t, e), id: id}
	st.connect()
	return st
}

func (st *streamer) connect() {
	st.next++
	st.send(`{"id":%d,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, st.next, st.id)
}

// step hears what has come and sometimes begins anew, at once.
func (st *streamer) step(d *dice) {
	st.hear()
	if d.n(5) == 0 {
		st.cancel(fmt.Sprint(st.next))
		st.hear()
		st.parts = append(st.parts, st.told)
		st.told = nil
		st.connect()
	}
}

func (st *streamer) hear() {
	synctest.Wait()
	for len(st.lines) > 0 {
		line := <-st.lines
		var m struct {
			Method string
			Params struct {
				initialState
				Msg event.Msg
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			st.t.Fatalf("%v: %s", err, line)
		}
		events := m.Params.State.Events
		if m.Params.Msg != nil {
			events = []streamEvent{{Msg: m.Params.Msg}}
		}
		for _, ev := range events {
			if !ev.Msg.Delta() {
				text, _ := json.Marshal(ev.Msg)
				st.told = append(st.told, string(text))
			}
		}
	}
}

// check compares what each of its streams told with the whole: the last told all, those
// that were left told it as far as it had come.
func (st *streamer) check(want []string) {
	st.t.Helper()
	st.hear()
	if d := cmp.Diff(want, st.told); d != "" {
		st.t.Errorf("the last stream of %s (-journal +told):\n%s", st.id, d)
	}
	for i, part := range st.parts {
		if len(part) > len(want) || !slices.Equal(want[:len(part)], part) {
			st.t.Errorf("stream %d of %s told %q", i, st.id, part)
		}
	}
}

// sameStory checks that every listener was told the same as a stream that begins now, and
// returns that.
func sameStory(t *testing.T, e *enginetest.Engine, ids []string, clients []*randomClient) map[string][]string {
	t.Helper()
	story := map[string][]string{}
	judge := attach(t, e)
	for _, id := range ids {
		judge.send(`{"id":1,"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":%q}}}`, id)
		judge.skip("1")
		line, _ := judge.next()
		var state struct{ Params initialState }
		if err := json.Unmarshal([]byte(line), &state); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, ev := range state.Params.State.Events {
			if ev.Msg.Delta() {
				continue
			}
			text, _ := json.Marshal(ev.Msg)
			want = append(want, string(text))
		}
		story[id] = want
		for _, c := range clients {
			if d := cmp.Diff(want, c.listened[id]); d != "" {
				t.Errorf("a listener of %s (-journal +told):\n%s", id, d)
			}
		}
	}
	return story
}
