package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	p "github.com/fermata-agent/fermata/protocol"
)

// seen reads events until the given turn has ended.
func (s *reader) untilEnd(turn p.TurnID) (list []p.Event) {
	s.t.Helper()
	for {
		m, ok := s.next()
		if !ok {
			s.t.Fatal("the stream ended")
		}
		var e p.Event
		if err := json.Unmarshal(m.data, &e); err != nil {
			s.t.Fatalf("%v in %s", err, m.data)
		}
		if (e.Seq != 0) != (m.id != "") || e.Seq != 0 && m.id != strconv.Itoa(int(e.Seq)) {
			s.t.Errorf("event %d has the id %q", e.Seq, m.id)
		}
		list = append(list, e)
		if _, ok := e.Body.(*p.TurnEnded); ok && e.Turn == turn {
			return list
		}
	}
}

func TestEventsFromACursor(t *testing.T) {
	r := newRig(t)
	id := r.begin("one two")
	path := "/api/v1/conversations/" + string(id) + "/events"
	all := r.stream("GET", path, "").untilEnd(1)
	if all[0].Seq != 1 {
		t.Errorf("the first event is %d", all[0].Seq)
	}
	r.op(id, p.UserTurn{Content: p.Text("three")})
	rest := r.stream("GET", path+"?after="+strconv.Itoa(int(all[len(all)-1].Seq)), "").untilEnd(2)
	next := all[len(all)-1].Seq
	for _, e := range rest {
		if e.Seq == 0 {
			continue
		}
		if next++; e.Seq != next {
			t.Fatalf("event %d after %d", e.Seq, next-1)
		}
	}
}

// A screen is what a page shows, as page/js does it.
type screen struct {
	have  live.Have
	items map[string]*element
	state *live.State
	reset int
}

type element struct {
	n      int
	html   string
	blocks []string
	out    string
	next   int64
}

func (s *screen) apply(t *testing.T, u live.Update) {
	t.Helper()
	if u.Reset {
		s.reset++
		s.items, s.have.Open = map[string]*element{}, map[string]int64{}
	}
	for _, id := range u.Gone {
		delete(s.items, id)
		delete(s.have.Open, id)
	}
	for _, x := range u.Items {
		it := s.items[x.ID]
		if x.HTML != nil {
			it = &element{n: x.N, html: *x.HTML}
			s.items[x.ID] = it
		}
		if it == nil {
			t.Fatalf("a patch for %s, which is not there", x.ID)
		}
		delete(s.have.Open, x.ID)
		if x.Open {
			s.have.Open[x.ID] = 0
		}
		if x.Blocks != nil {
			if int(x.From) > len(it.blocks) {
				t.Fatalf("blocks from %d, there are %d", x.From, len(it.blocks))
			}
			it.blocks = append(it.blocks[:x.From], x.Blocks...)
			s.have.Open[x.ID] = int64(len(it.blocks) - 1)
		}
		if o := x.Output; o != nil {
			if o.From != it.next {
				t.Fatalf("output from %d, there are %d", o.From, it.next)
			}
			it.out += o.Text
			it.next = o.Next
			s.have.Open[x.ID] = o.Next
		}
	}
	s.have.Cursor = u.Cursor
	if u.State != nil {
		s.state = u.State
	}
}

// text is what is on the screen, in order.
func (s *screen) text() (list []string) {
	for _, id := range slices.SortedFunc(maps.Keys(s.items), func(a, b string) int { return s.items[a].n - s.items[b].n }) {
		list = append(list, s.items[id].html+strings.Join(s.items[id].blocks, ""))
	}
	return list
}

func newScreen() *screen {
	return &screen{items: map[string]*element{}, have: live.Have{Open: map[string]int64{}}}
}

func (r *rig) view(id p.ConversationID, s *screen) *reader {
	r.t.Helper()
	body, _ := json.Marshal(viewRequest{Conversation: id, Have: s.have})
	return r.stream("POST", "/api/v1/view", string(body))
}

// take applies one update; false if the stream has ended.
func (s *screen) take(t *testing.T, from *reader) bool {
	t.Helper()
	m, ok := from.next()
	if !ok {
		return false
	}
	if m.event != "view" {
		t.Fatalf("%s: %s", m.event, m.data)
	}
	var u live.Update
	if err := json.Unmarshal(m.data, &u); err != nil {
		t.Fatal(err)
	}
	s.apply(t, u)
	return true
}

func (s *screen) until(t *testing.T, from *reader, is func() bool) {
	t.Helper()
	for !is() {
		if !s.take(t, from) {
			t.Fatalf("the stream ended; on the screen is %q", s.text())
		}
	}
}

// However often a page is cut off, and wherever, it ends up with what a page shows that was there all the time,
// and has begun anew only once.
func TestAPageThatIsCutOffMissesNothing(t *testing.T) {
	r := newRig(t)
	id := r.begin("hello")
	rng := rand.New(rand.NewPCG(1, 2))
	cut, whole := newScreen(), newScreen()
	all := r.view(id, whole)
	stream := r.view(id, cut)
	for i := range 30 {
		words := fmt.Sprintf("word%d wait more%d wait", i, i)
		r.op(id, p.UserTurn{Content: p.Text(words), WhenBusy: p.Queue})
		for range 2 {
			if rng.IntN(2) == 0 {
				stream.cancel()
				stream = r.view(id, cut)
			}
			if rng.IntN(2) == 0 {
				cut.take(t, stream)
			}
			r.gates <- struct{}{}
		}
	}
	done := func(s *screen) func() bool {
		return func() bool { return s.state != nil && s.state.Turn == 31 && s.state.Phase == "ready" }
	}
	cut.until(t, stream, done(cut))
	whole.until(t, all, done(whole))
	fresh := newScreen()
	fresh.until(t, r.view(id, fresh), done(fresh))
	if d := cmp.Diff(fresh.text(), whole.text()); d != "" {
		t.Errorf("the page that was there all the time (-fresh +got):\n%s", d)
	}
	if d := cmp.Diff(fresh.text(), cut.text()); d != "" {
		t.Errorf("the page that was cut off (-fresh +got):\n%s", d)
	}
	if cut.reset > 1 || len(cut.have.Open) > 0 {
		t.Errorf("it began anew %d times; open: %v", cut.reset, cut.have.Open)
	}
}

func TestOpenTextComesOnce(t *testing.T) {
	r := newRig(t)
	id := r.begin("one wait two wait three")
	a := newScreen()
	stream := r.view(id, a)
	has := func(s *screen, text string) func() bool {
		return func() bool { return strings.Contains(strings.Join(s.text(), " "), text) }
	}
	a.until(t, stream, has(a, "<p>one"))
	stream.cancel()
	r.gates <- struct{}{}
	stream = r.view(id, a)
	a.until(t, stream, has(a, "<p>one two"))
	r.gates <- struct{}{}
	a.until(t, stream, has(a, "<p>one two three"))
	a.until(t, stream, func() bool { return a.state.Phase == "ready" })
	if n := strings.Count(strings.Join(a.text(), " "), "one two three"); n != 1 {
		t.Errorf("shown %d times: %q", n, a.text())
	}
}

func TestApproveFromThePage(t *testing.T) {
	r := newRig(t)
	id := r.begin("work")
	a := newScreen()
	stream := r.view(id, a)
	a.until(t, stream, func() bool { return a.state != nil && a.state.Phase == "waiting" })
	if q := a.state.Dock.Approvals; !strings.Contains(q, "&lt;script&gt;") || strings.Contains(q, "<script>") || strings.Count(q, "data-decision=") != 4 {
		t.Errorf("the question is %s", q)
	}
	r.op(id, p.Approve{Call: p.CallID{Turn: 1, Response: 1, Index: 0}, Decision: p.Approved})
	a.until(t, stream, func() bool { return a.state.Phase == "ready" })
	if text := strings.Join(a.text(), ""); !strings.Contains(text, "worked") || !strings.Contains(text, "done") {
		t.Errorf("on the screen: %s", text)
	}
	status, text, _ := r.do("POST", "/api/v1/conversations/"+string(id)+"/ops", `{"kind":"approve","body":{"call":"1.1.0","decision":"approved"}}`, nil)
	if status != http.StatusConflict || !strings.Contains(text, "no_approval") {
		t.Errorf("a second answer: %d %s", status, text)
	}
}

func TestAnOpThatIsSentAgainIsCarriedOutOnce(t *testing.T) {
	r := newRig(t)
	id := r.begin("wait")
	path := "/api/v1/conversations/" + string(id) + "/ops"
	body := `{"kind":"user_turn","body":{"content":[{"type":"text","text":"again"}],"when_busy":"queue"}}`
	key := func(q *http.Request) { q.Header.Set("Idempotency-Key", "k") }
	_, first, _ := r.do("POST", path, body, key)
	_, second, _ := r.do("POST", path, body, key)
	if first != second {
		t.Errorf("%s, then %s", first, second)
	}
	var snap p.Snapshot
	r.must("GET", "/api/v1/conversations/"+string(id), "", &snap)
	if len(snap.Inputs) != 1 {
		t.Errorf("%d messages wait", len(snap.Inputs))
	}
	r.op(id, p.Interrupt{})
}

func TestARevokedSessionLosesItsStreams(t *testing.T) {
	r := newRig(t)
	r.server.ping = 10 * time.Millisecond
	id := r.begin("hi")
	a := newScreen()
	stream := r.view(id, a)
	a.take(t, stream)
	if _, err := r.access.Revoke(r.session.Session.ID); err != nil {
		t.Fatal(err)
	}
	for a.take(t, stream) {
	}
}

// noList is an engine that cannot list.
type noList struct{ engine.Engine }

func (noList) List(context.Context, engine.ListOptions) (engine.Page, error) {
	return engine.Page{}, errors.New("cannot read <b>/home</b>")
}

// partOfList is an engine that cannot read all it should list.
type partOfList struct{ engine.Engine }

func (e partOfList) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	page, err := e.Engine.List(ctx, o)
	page.Unread = []string{"cannot read <b>/home</b>"}
	return page, err
}

func TestTheListSaysWhatIsMissing(t *testing.T) {
	r := newRig(t)
	r.begin("hi")
	r.server.o.Engine = partOfList{r.engine}
	for query, times := range map[string]int{"": 1, "?html=true": 2} {
		if status, text, _ := r.do("GET", "/api/v1/conversations"+query, "", nil); status != 200 || strings.Count(text, "cannot read") != times || !strings.Contains(text, `"unread":[`) {
			t.Errorf("%q: %d %s", query, status, text)
		}
	}
}

func TestTheListShowsWhyItIsEmpty(t *testing.T) {
	r := newRig(t)
	r.server.lobby = live.NewLobby(t.Context(), live.Options{Engine: noList{r.engine}})
	m, ok := r.stream("POST", "/api/v1/view", `{"list":true,"have":{"cursor":0}}`).next()
	var v listView
	if err := json.Unmarshal(m.data, &v); !ok || err != nil || !strings.Contains(v.HTML, "cannot read &lt;b&gt;/home") {
		t.Errorf("%q, %v", m.data, err)
	}
}

func TestTheListShowsWhoWaits(t *testing.T) {
	r := newRig(t)
	id := r.begin("work")
	later := r.begin("hi")
	stream := r.stream("POST", "/api/v1/view", `{"list":true,"have":{"cursor":0}}`)
	for {
		m, ok := stream.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		var v listView
		if err := json.Unmarshal(m.data, &v); err != nil {
			t.Fatal(err)
		}
		if v.Waiting == 0 {
			continue // the turn is on its way there
		}
		if strings.Index(v.HTML, string(id)) > strings.Index(v.HTML, string(later)) {
			t.Errorf("who waits is not first: %s", v.HTML)
		}
		return
	}
}

func TestUnknownConversations(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"", "/events", "/diff", "/items", "/items/1"} {
		status, text, _ := r.do("GET", "/api/v1/conversations/00000000-0000-7000-8000-000000000000"+path, "", nil)
		if status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// What the API cannot do is said in the form of its other errors.
func TestWrongRequests(t *testing.T) {
	r := newRig(t)
	for request, want := range map[string]struct {
		status int
		text   string
	}{
		"GET /api/v1/nope":                       {http.StatusNotFound, `"code":"not_found"`},
		"PUT /api/v1/conversations":              {http.StatusMethodNotAllowed, `"code":"not_found"`},
		"GET /api/v1/conversations?archived=yes": {http.StatusBadRequest, "archived must be true or false"},
		"GET /api/v1/conversations?limit=-1":     {http.StatusBadRequest, "limit must be a number"},
	} {
		method, path, _ := strings.Cut(request, " ")
		status, text, _ := r.do(method, path, "", nil)
		if status != want.status || !strings.Contains(text, want.text) || !json.Valid([]byte(text)) {
			t.Errorf("%s: %d %s, want %d %s", request, status, text, want.status, want.text)
		}
	}
}
