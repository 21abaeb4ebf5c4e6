package updates

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// show sends what is new about an item. e is the event that changed it, if that is live.
func (f *Fold) show(it *transcript.Item, e p.Event) {
	switch it.Kind {
	case transcript.User:
		f.user(it)
	case transcript.Message:
		f.text(it, wire.AgentChunk)
	case transcript.Reasoning:
		f.text(it, wire.ThoughtChunk)
	case transcript.Plan:
		f.once(it, func() { f.plan(it) })
	case transcript.Notice:
		f.once(it, func() { f.notice(it) })
	case transcript.Retry:
		f.retry(it)
	case transcript.Call:
		if _, ok := e.Body.(*p.Delta); ok {
			f.cur.wait(it.ID)
			return
		}
		f.showCall(it)
	case transcript.Background, transcript.End: // what runs on is not part of the call; the end is in the answer to the prompt
	}
}

// wait has the output of a call sent with the next flush.
func (t *turn) wait(id string) {
	for _, w := range t.waiting {
		if w == id {
			return
		}
	}
	t.waiting = append(t.waiting, id)
}

// once shows an item that does not change.
func (f *Fold) once(it *transcript.Item, show func()) {
	if f.cur.sent[it.ID] == nil {
		f.cur.sent[it.ID] = &sent{}
		show()
	}
}

func (f *Fold) user(it *transcript.Item) {
	if f.cur.shell {
		return // the command itself is shown
	}
	f.once(it, func() {
		if it.Text != "" {
			f.add(wire.Chunk{Update: wire.UserChunk, Content: wire.Text(it.Text), MessageID: it.ID})
		}
		for _, url := range it.Images {
			f.add(wire.Chunk{Update: wire.UserChunk, Content: imageBlock(url), MessageID: it.ID})
		}
	})
}

// maxImage is how long an image may be: clients do not read lines of any length.
const maxImage = 16 << 20

// imageBlock is an image: its data, or its address.
func imageBlock(url string) wire.Block {
	if len(url) > maxImage {
		return wire.Text("(an image that is too large to be shown here)")
	}
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if mime, data, ok := strings.Cut(rest, ";base64,"); ok {
			return wire.Block{Type: "image", MimeType: mime, Data: data}
		}
	}
	return wire.Block{Type: "resource_link", URI: url, Name: "image"}
}

// text sends what is new of a message.
func (f *Fold) text(it *transcript.Item, kind string) {
	if id, err := p.ParseItemID(it.ID); err == nil && f.cur.summary != 0 && id.Response == f.cur.summary {
		return // a summary is for the model
	}
	s := f.cur.sent[it.ID]
	if s == nil {
		s = &sent{}
		f.cur.sent[it.ID] = s
	}
	now := it.Text
	if it.Status == transcript.Open {
		now = whole(now)
	}
	more, ok := strings.CutPrefix(now, s.text)
	switch {
	case ok:
	case it.Omitted > 0 || it.Status == transcript.Interrupted: // of a very long text that is not finished only the head and the tail are kept
		more = ""
	default: // what the service sent in the end is not what it streamed
		more = now
	}
	if s.text = now; more == "" {
		return
	}
	c := wire.Chunk{Update: kind, Content: wire.Text(strings.ToValidUTF8(more, "\uFFFD")), MessageID: it.ID}
	if it.Status == transcript.Interrupted {
		c.Meta = map[string]any{"fermata": map[string]any{"partial": true}}
	}
	f.add(c)
}

func (f *Fold) plan(it *transcript.Item) {
	out := wire.Plan{Update: "plan", Entries: []wire.PlanEntry{}}
	for _, s := range it.Plan {
		out.Entries = append(out.Entries, wire.PlanEntry{Content: s.Step, Priority: "medium", Status: s.Status})
	}
	f.add(out)
}

// notice sends a remark: as such where the client knows that, else as a warning in the conversation, or a thought.
func (f *Fold) notice(it *transcript.Item) {
	severity, kind := "info", wire.ThoughtChunk
	if it.Warn {
		severity, kind = "warning", wire.AgentChunk
	}
	switch {
	case !f.o.Notices:
		f.add(wire.Chunk{Update: kind, Content: wire.Text(it.Text + "\n"), MessageID: it.ID})
	case f.live: // it is not part of the history
		f.add(wire.Notice{Update: "notice", Severity: severity, Title: it.Text})
	}
}

// retry sends each retry once, while it matters.
func (f *Fold) retry(it *transcript.Item) {
	if !f.live || it.Status != transcript.Open {
		return
	}
	if f.o.Notices {
		f.add(wire.Notice{Update: "notice", Severity: "warning", Title: it.Text})
		return
	}
	f.add(wire.Chunk{Update: wire.ThoughtChunk, Content: wire.Text(it.Text + "\n"), MessageID: it.ID})
}
