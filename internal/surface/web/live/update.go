package live

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/web/render"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Have is what a page has of a conversation.
type Have struct {
	Cursor p.Cursor         `json:"cursor"`         // the last event that it has seen; 0 is nothing
	Open   map[string]int64 `json:"open,omitempty"` // of items that are open: how many blocks have ended, or bytes of output
}

// An Update is what a page has not seen.
type Update struct {
	Cursor  p.Cursor `json:"cursor"`            // the last event in it
	Reset   bool     `json:"reset,omitempty"`   // the page begins anew
	Earlier int      `json:"earlier,omitempty"` // with Reset: how many items are before the first one
	Items   []Patch  `json:"items,omitempty"`
	Gone    []string `json:"gone,omitempty"` // items that the page has and that are not
	State   *State   `json:"state,omitempty"`
}

// A Patch changes one item of the page, or adds it.
type Patch struct {
	ID     string   `json:"id"`
	N      int      `json:"n"`                // its place
	HTML   *string  `json:"html,omitempty"`   // replaces the element, if there is one
	Blocks []string `json:"blocks,omitempty"` // of a text that is open: replace the blocks from From on
	From   int64    `json:"from,omitempty"`
	Output *Output  `json:"output,omitempty"` // of a command that runs
	Open   bool     `json:"open,omitempty"`   // more of it will come
}

// Output is a part of what a command has printed, by its offset in bytes.
type Output struct {
	From int64  `json:"from"` // a page that has less missed something, which was left out
	Next int64  `json:"next"`
	Text string `json:"text"` // whole lines
	Tail string `json:"tail"` // of the line that has not ended; it is sent again
}

// A State is what goes on.
type State struct {
	Title    string         `json:"title"`
	Cwd      string         `json:"cwd"`
	Model    string         `json:"model"`
	Sandbox  string         `json:"sandbox"`
	Approval string         `json:"approval"`
	Phase    string         `json:"phase"` // ready, working, stopping, waiting, held
	Turn     p.TurnID       `json:"turn"`
	Started  time.Time      `json:"started,omitzero"`
	Hold     string         `json:"hold,omitempty"`
	Usage    p.Usage        `json:"usage"`
	Cost     string         `json:"cost,omitempty"`
	Changed  p.TurnID       `json:"changed,omitempty"`  // the last turn whose changes to files can be undone
	Inputs   map[int]string `json:"inputs,omitempty"`   // the waiting messages, to be edited
	Returned map[int]string `json:"returned,omitempty"` // those that were not delivered, to be edited
	Dock     render.Dock    `json:"dock"`
}

// How much a page is given.
const (
	firstItems = 150
	mostItems  = 3000     // of those that a page missed
	mostOutput = 32 << 10 // of what a command has printed
	mostLine   = 16 << 10 // of a line that has not ended
)

// since is what a page has not seen, and what it has then.
func (r *room) since(a *ask) (*Update, Have) {
	u := &Update{Cursor: r.seq}
	open := maps.Clone(a.have.Open)
	if open == nil {
		open = map[string]int64{}
	}
	rows := r.unseen(a, u)
	if u.Reset {
		clear(open)
	}
	for id := range open {
		if r.tr.Item(id) == nil {
			u.Gone = append(u.Gone, id)
			delete(open, id)
		}
	}
	for _, w := range rows {
		if patch, ok := r.patch(w, a, open); ok {
			u.Items = append(u.Items, patch)
		}
	}
	if a.ver < r.state {
		u.State = r.stateNow()
	}
	return u, Have{Cursor: r.seq, Open: open}
}

// unseen are the rows that a page has not seen as they are.
func (r *room) unseen(a *ask, u *Update) []*row {
	if a.ver > 0 {
		return r.changed(a.ver)
	}
	var rows []*row
	if c := a.have.Cursor; c > 0 && c <= r.seq {
		for _, w := range r.rows {
			if w.seq > c || w.it.Status == transcript.Open {
				rows = append(rows, w)
			}
		}
		if len(rows) <= mostItems {
			return rows
		}
	}
	from := max(0, len(r.rows)-firstItems)
	u.Reset, u.Earlier = true, from
	return r.rows[from:]
}

// patch is what a page needs to show a row as it is. open is what it has of open items, and will have.
func (r *room) patch(w *row, a *ask, open map[string]int64) (Patch, bool) {
	patch := Patch{ID: w.it.ID, N: w.n}
	known, has := open[w.it.ID]
	if !grows(w.it) {
		delete(open, w.it.ID)
		patch.HTML = new(r.draw(w))
		return patch, true
	}
	patch.Open = true
	if !has || a.ver > 0 && w.shape > a.ver || a.ver == 0 && w.seq > a.have.Cursor {
		patch.HTML = new(r.draw(w))
		known = 0
	}
	if w.it.Kind == transcript.Message || w.it.Kind == transcript.Reasoning {
		if w.blocks == nil {
			w.blocks = &render.Blocks{}
			w.blocks.Write(w.it.Text)
		}
		patch.From = min(known, int64(w.blocks.Stable()))
		patch.Blocks = w.blocks.From(int(patch.From))
		open[w.it.ID] = int64(w.blocks.Stable())
		return patch, true
	}
	patch.Output = outputAfter(w.it, known)
	open[w.it.ID] = patch.Output.Next
	return patch, true
}

// grows reports whether the text of an item comes piece by piece.
func grows(it *transcript.Item) bool {
	switch it.Kind {
	case transcript.Message, transcript.Reasoning, transcript.Background:
		return it.Status == transcript.Open
	case transcript.Call:
		return it.Status == transcript.Open && len(it.Changes) == 0
	}
	return false
}

// outputAfter is what a command has printed after an offset: whole lines, the end of them if they are many.
func outputAfter(it *transcript.Item, known int64) *Output {
	start := it.Omitted // the offset of what is kept
	from := min(max(known-start, 0), int64(len(it.Output)))
	text := it.Output[from:]
	if len(text) > mostOutput+mostLine {
		skip := len(text) - mostOutput
		if i := strings.IndexByte(text[skip:], '\n'); i >= 0 && i < mostLine {
			skip += i + 1
		}
		for skip < len(text) && !utf8.RuneStart(text[skip]) {
			skip++
		}
		from += int64(skip)
		text = text[skip:]
	}
	o := &Output{From: start + from, Next: start + from}
	whole := strings.LastIndexByte(text, '\n') + 1
	if whole == 0 && len(text) > mostLine { // a line without end
		whole = len(text)
	}
	o.Next += int64(whole)
	o.Text = lines(text[:whole])
	o.Tail = render.Output(text[whole:])
	return o
}

// lines makes output as a terminal would show it.
func lines(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(render.Output(strings.TrimSuffix(l, "\n")))
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *room) earlier(before, limit int) []Patch {
	before = min(max(before, 0), len(r.rows))
	var list []Patch
	for _, w := range r.rows[max(0, before-limit):before] {
		patch := Patch{ID: w.it.ID, N: w.n, HTML: new(r.draw(w))}
		list = append(list, patch)
	}
	return list
}

func (r *room) stateNow() *State {
	tr := &r.tr
	s := tr.Settings
	asking := r.asking()
	st := &State{
		Title: safetext.ShowLine(cmp.Or(tr.Title, r.first)), Cwd: safetext.ShowLine(s.Cwd), Model: safetext.ShowLine(strings.TrimSpace(s.Model + " " + s.Effort)),
		Sandbox: string(s.Sandbox.Mode), Approval: string(s.Approval), Phase: phase(tr, len(asking)), Turn: tr.Turn,
		Usage: tr.Usage, Changed: tr.LastChanged(), Dock: render.NewDock(r.id, tr, asking), Inputs: map[int]string{}, Returned: map[int]string{},
	}
	if tr.Active {
		st.Started = tr.Started
	}
	if tr.Hold != nil {
		st.Hold = safetext.Clean(transcript.HoldText(tr.Hold))
	}
	if r.o.Cost != nil && tr.Usage.Total > 0 {
		if c, ok := r.o.Cost(s, tr.Usage); ok {
			st.Cost = fmt.Sprintf("$%.2f", c)
		}
	}
	for _, in := range tr.Inputs {
		st.Inputs[int(in.Input)] = p.Written(in.Content)
	}
	for _, in := range tr.Undelivered() {
		st.Returned[int(in.Input)] = p.Written(in.Content)
	}
	return st
}

func phase(tr *transcript.Transcript, asking int) string {
	switch {
	case !tr.Active:
		return "ready"
	case tr.Stopping:
		return "stopping"
	case asking > 0:
		return "waiting"
	case tr.Hold != nil:
		return "held"
	}
	return "working"
}
