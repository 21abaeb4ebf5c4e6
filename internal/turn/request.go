package turn

import (
	"slices"
	"strings"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// How long a request may be, and what follows when it is too long. A history that is
// about to be too long is replaced by a summary, as often as needed. A request that is
// refused for its length is made again, shorter, until it fits; if no summary can be had, one is made from the records.

const (
	maxRefusals  = 12               // in a row, before a length is given up
	leastHistory = 1000             // tokens of a history that are worth sending
	maxWait      = 60 * time.Second // see Env.MaxWait
)

// threshold is how many tokens a request to a model with a window may have: some room
// is left for the answer.
func threshold(window int64) int64 { return window*9/10 - answerRoom(window) }

// ceiling is how many tokens it may have at most. A request for a summary may have them.
func ceiling(window int64) int64 { return window*97/100 - answerRoom(window) }

func answerRoom(window int64) int64 { return min(4096, window/8) }

func (r Room) size(added ...[]p.Content) int64 {
	if r.Size == nil {
		return 0
	}
	return r.Size(added...)
}

// full reports whether the next request, with some messages added, would be too long.
func (d *decision) full(added ...[]p.Content) bool {
	r := d.env.Room
	return r.Window > 0 && r.size(added...) > threshold(r.Window)
}

// request makes the next model request, with what was steered in before it.
func (d *decision) request() {
	s := d.state
	var added [][]p.Content
	for _, in := range s.Pending {
		if in.Joins() && !s.Compact {
			added = append(added, in.Content)
		}
	}
	full := d.full(added...)
	if !d.asksForSummary(full) {
		d.deliver()
	}
	d.send(full, added...)
}

// deliver adds what was steered in.
func (d *decision) deliver() {
	for _, in := range slices.Clone(d.state.Pending) {
		if in.Joins() {
			item := p.ItemID{Turn: d.state.Turn, Index: d.state.Messages}
			d.add(&p.UserMessage{Item: item, Input: in.ID, Content: in.Content, Ref: in.Ref})
		}
	}
}

// asksForSummary reports whether the next request asks for a summary.
func (d *decision) asksForSummary(full bool) bool {
	s := d.state
	return s.Compact || !s.HasCompacted && (s.AwaitingSummary || full && d.env.Room.Grown)
}

// send makes the next request. One that would be too long all the same is shortened.
func (d *decision) send(full bool, added ...[]p.Content) {
	next := &p.ModelRequested{Response: d.state.Response + 1, Compact: d.asksForSummary(full)}
	if next.Compact {
		added = nil
	}
	if r := d.env.Room; r.Window > 0 && r.size(added...) > ceiling(r.Window) {
		next.Limit = threshold(r.Window)
	}
	d.add(next)
}

// sent is how many tokens the latest request had.
func (d *decision) sent() int64 {
	size := d.env.Room.size()
	if l := d.state.Limit; l > 0 && l < size {
		return l
	}
	return size
}

// withWindow adds to a refusal for length how much the service takes: not more than
// it said, and less than it was sent, as far as that is known.
func (d *decision) withWindow(err *p.Error) *p.Error {
	sent := d.sent()
	if err == nil || err.Kind != p.ErrorContextLength || sent == 0 {
		return err
	}
	known := *err
	if known.Window == 0 || known.Window > sent {
		known.Window = max(sent*9/10, leastHistory)
	}
	return &known
}

// tooLong decides what follows when a request was refused for its length. It reports
// false if nothing is left to try.
func (d *decision) tooLong(err *p.Error) bool {
	s := d.state
	next := d.sent() * 7 / 10
	if room := threshold(err.Window); room > 0 && (next == 0 || room < next) {
		next = room
	}
	can := next >= d.env.Room.Overhead+leastHistory && s.Refusals <= maxRefusals
	request := &p.ModelRequested{Response: s.Response + 1, Compact: s.Compacting(), Limit: next}
	switch {
	case s.Compacting() && !can:
		return false // a summary is made from the records
	case !s.Compacting() && !s.HasCompacted && d.compactable():
		d.add(&p.Notice{Text: "the conversation is too long for the model; summarising it"})
		request.Compact = true
	case !can:
		return false
	}
	d.repeat(request)
	return true
}

// compactable reports whether a compaction could make the history shorter. Where
// nothing is known of sizes it is tried.
func (d *decision) compactable() bool { return d.env.Room.Grown || d.env.Room.Size == nil }

// summariseLocally puts a summary made from the records in the place of the history, if
// the service cannot be brought to make one. It reports false if that is not why it failed.
func (d *decision) summariseLocally(err *p.Error) bool {
	switch err.Kind {
	case p.ErrorContextLength, p.ErrorRequest, p.ErrorModel, p.ErrorHistory:
	default:
		return false // it would fail the request after it just the same
	}
	if d.env.Room.LocalSummary == nil {
		return false
	}
	d.add(&p.Notice{Text: "the model service made no summary (" + err.Message + "); one was made from the records", Warn: true})
	d.compacted(&p.Compacted{Summary: d.env.Room.LocalSummary(), Local: true})
	return true
}

// endCompaction puts what the model said in the place of the history.
func (d *decision) endCompaction() {
	text := strings.TrimSpace(d.summary)
	if len(text) < d.env.Room.LeastSummary && d.state.Summaries == 1 {
		d.add(&p.Notice{Text: "the model's summary is too short to continue from; asking for it once more"})
		d.again()
		return
	}
	if text == "" || len(text) < d.env.Room.LeastSummary && d.env.Room.LocalSummary != nil {
		if text != "" {
			d.add(&p.Notice{Text: "the model's summary is too short to continue from; one was made from the records", Warn: true})
			d.compacted(&p.Compacted{Summary: text + "\n\n" + d.env.Room.LocalSummary(), Local: true})
			return
		}
		err := &p.Error{Kind: p.ErrorModel, Message: "the model gave no summary"}
		if d.summariseLocally(err) {
			return
		}
		d.add(&p.StopRequested{Reason: p.Failed, Error: err})
		d.settle(false) // background commands of the turn end first
		return
	}
	d.compacted(&p.Compacted{Summary: text})
}

// compacted records a compaction and goes on.
func (d *decision) compacted(b *p.Compacted) {
	b.Keep = d.env.Room.Keep
	d.add(b)
	if d.state.Compact {
		d.end(p.Completed)
		return
	}
	d.env.Room.Size = nil // what it said of the history before is no longer so
	d.request()           // now with room
}

// rungs are what is taken out of a history that a service refuses, one after the other.
var rungs = []p.HistoryPart{p.PartReasoning, p.PartImages, p.PartOutputs}

// rungText says what was taken out.
var rungText = map[p.HistoryPart]string{
	p.PartReasoning: "the model service refused the reasoning of earlier responses; trying again without it",
	p.PartImages:    "the model service refused an image; trying again without images",
	p.PartOutputs:   "the model service refused the history; trying again with shorter outputs",
}

// reduce takes the refused part out of the history, or the next one if it was taken out
// already. It reports false if nothing is left to take out.
func (d *decision) reduce(part p.HistoryPart) bool {
	first := slices.Index(rungs, part)
	if first < 0 {
		return false
	}
	for _, r := range rungs[first:] {
		if slices.Contains(d.state.Reduced, r) {
			continue
		}
		d.add(&p.HistoryReduced{Part: r}, &p.Notice{Text: rungText[r], Warn: true})
		d.again()
		return true
	}
	return false
}

// again makes the latest request once more.
func (d *decision) again() {
	d.repeat(&p.ModelRequested{Response: d.state.Response + 1, Compact: d.state.Compacting(), Limit: d.state.Limit})
}

// repeat makes a request in the place of one that was refused.
func (d *decision) repeat(request *p.ModelRequested) {
	if !request.Compact {
		d.deliver()
	}
	d.add(request)
}

// hold makes the turn wait if a limit of the service is reached, and reports whether it
// does.
func (d *decision) hold(err *p.Error) bool {
	longest := d.env.MaxWait
	if longest == 0 {
		longest = maxWait
	}
	limited := err.Kind == p.ErrorUsageLimit || err.After > longest
	if !limited {
		return false
	}
	if d.env.OnLimit != p.OnLimitHold && d.env.OnLimit != p.OnLimitResume {
		d.add(&p.StopRequested{Reason: p.Failed, Error: err})
		return true
	}
	held := &p.Held{Error: *err, Resume: d.env.OnLimit == p.OnLimitResume}
	if err.After > 0 {
		held.Until = d.env.Now.Add(err.After).Round(time.Second)
	}
	d.add(held)
	return true
}

// endHold makes the request again that the turn was held at.
func (d *decision) endHold(settings *p.Settings) {
	d.add(&p.HoldEnded{Settings: settings})
	d.request()
}
