package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// Start begins a new conversation in an empty journal. It returns when that is
// durable. ctx gives values only; its end does not end the conversation.
func Start(ctx context.Context, cfg Config, j journal.Journal) (*Conversation, error) {
	o := newOwner(ctx, cfg, j)
	o.recordOutsideTurn(&p.ConversationStarted{ID: o.cfg.ID, Version: o.cfg.Version, Settings: o.cfg.Settings})
	return o.begin(ctx)
}

// Open takes up a conversation where it was left: it ends what a crash left
// open, records what had to be repaired, and starts the owner.
func Open(ctx context.Context, cfg Config, j journal.Journal) (*Conversation, error) {
	o := newOwner(ctx, cfg, j)
	left, err := o.replay()
	if err != nil {
		j.Close()
		return nil, err
	}
	o.recover(ctx, left)
	return o.begin(ctx)
}

func newOwner(ctx context.Context, cfg Config, j journal.Journal) *owner {
	c := &Conversation{
		journal: j, ops: make(chan request), inbox: make(chan message),
		unfollow: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
	}
	return &owner{
		base: ctx, conv: c, cfg: cfg.withDefaults(), journal: j,
		history: &history.History{}, asked: map[p.CallID]*p.ApprovalRequested{},
		jobs: map[p.BackgroundID]tool.Background{}, warned: map[string]bool{},
	}
}

// begin starts the owner, and waits until what opening recorded is durable.
func (o *owner) begin(ctx context.Context) (*Conversation, error) {
	if o.state.Active { // it waits for an approval: its tools are needed when that comes
		o.ctx, o.cancel = context.WithCancelCause(context.WithoutCancel(o.base))
		o.tools = o.cfg.Tools(o.now)
	}
	opened := make(chan error, 1)
	o.replies = append(o.replies, reply{o.last, func(err error) { opened <- err }})
	o.durable()
	go o.run() // ended by Close, Kill or a failed journal; waited for through done
	select {
	case err := <-opened:
		if err != nil {
			o.conv.Kill() // nobody will close it
			return nil, err
		}
		return o.conv, nil
	case <-ctx.Done():
		o.conv.Kill()
		return nil, context.Cause(ctx)
	}
}

// A process that was recorded, and whose end was not.
type leftover struct {
	call       p.CallID
	background p.BackgroundID // 0 while it is that of a call
	process    json.RawMessage
}

// name says whose process it is.
func (l leftover) name() string {
	if l.background != 0 {
		return fmt.Sprintf("background command %d", l.background)
	}
	return fmt.Sprintf("call %s", l.call)
}

// replay folds what is in the journal, and returns the processes that were
// running at its end.
func (o *owner) replay() ([]leftover, error) {
	var left []leftover
	after := o.restore()
	for {
		recs, err := o.journal.Read(o.base, after, 1000)
		if err != nil {
			return nil, fmt.Errorf("read the conversation: %w", err)
		}
		if len(recs) == 0 {
			return left, nil
		}
		for _, r := range recs {
			after = r.Seq
			body, err := p.DecodeBody(r.Kind, r.Body)
			if err != nil { // a later version's form: keep it, and go on without
				body = &p.Unknown{Kind: r.Kind, JSON: r.Body}
			}
			o.fold(p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Turn: p.TurnID(r.Turn), Body: body})
			left = track(left, body)
			o.grown += int64(len(r.Body))
		}
	}
}

func track(left []leftover, body p.Body) []leftover {
	switch b := body.(type) {
	case *p.CommandStarted:
		return append(left, leftover{call: b.Call, process: b.Process})
	case *p.BackgroundStarted:
		return append(left, leftover{background: b.ID, process: b.Process})
	case *p.ToolOutput:
		return slices.DeleteFunc(left, func(l leftover) bool { return l.background == 0 && l.call == b.Call })
	case *p.BackgroundEnded:
		return slices.DeleteFunc(left, func(l leftover) bool { return l.background == b.ID })
	}
	return left
}

// recover ends what a crash left open and records what had to be repaired.
func (o *owner) recover(ctx context.Context, left []leftover) {
	found := o.journal.Recovery()
	if o.id == "" {
		o.recordOutsideTurn(&p.ConversationStarted{ID: o.cfg.ID, Version: o.cfg.Version, Settings: o.cfg.Settings})
	}
	o.recovered = DescribeRecovery(found)
	lost := turn.Lost{Crash: true, Open: o.partials(p.ItemID{Turn: o.state.Turn})}
	for _, l := range left {
		n, err := o.reclaim(ctx, l.process)
		lost.Killed += n
		if err != nil {
			o.recovered = append(o.recovered, fmt.Sprintf("processes of %s may still run: %v", l.name(), err))
		}
	}
	if lost.Killed > 0 {
		o.recovered = append(o.recovered, fmt.Sprintf("%d processes that were left running were ended", lost.Killed))
	}
	settled := o.settle(&lost)
	for _, b := range o.state.Background {
		o.recovered = append(o.recovered, fmt.Sprintf("background command %d (%s) was cut", b.ID, strings.Join(b.Command, " ")))
	}
	cut := o.state.Active && !o.state.Waiting()
	o.step(lost)
	if cut {
		o.recovered = append(o.recovered, fmt.Sprintf("turn %d was cut; it is ended as %s", o.state.Turn, o.ended))
	}
	o.recordEach(settled)
	o.repairHistory()
	if len(o.recovered) > 0 {
		o.recordOutsideTurn(&p.Notice{Text: "found when reopening: " + strings.Join(o.recovered, "; "), Warn: true})
	}
}

// DescribeRecovery says in words what opening a journal had to set aside.
func DescribeRecovery(r journal.Recovery) []string {
	var words []string
	if r.Torn > 0 {
		words = append(words, fmt.Sprintf("an unfinished last record of %d bytes was set aside", r.Torn))
	}
	for _, d := range r.Damaged {
		words = append(words, fmt.Sprintf("%d damaged bytes (%d records) were set aside in %s", d.Bytes, d.Records, d.File))
	}
	return words
}

func (o *owner) reclaim(ctx context.Context, process json.RawMessage) (int, error) {
	if o.cfg.Reclaim == nil || process == nil {
		return 0, nil
	}
	return o.cfg.Reclaim(ctx, process)
}

// repairHistory answers calls whose output was lost with a damaged record.
func (o *owner) repairHistory() {
	open := map[p.CallID]bool{}
	if o.state.Active { // its calls will still be answered
		for _, id := range o.state.OpenCalls() {
			open[id] = true
		}
	}
	for _, id := range o.history.Missing() {
		if open[id] {
			continue
		}
		o.recordOutsideTurn(&p.ToolOutput{Call: id, Output: "aborted: the output was lost", Failed: true, Aborted: true, Repaired: true})
		o.recovered = append(o.recovered, fmt.Sprintf("call %s had lost its output", id))
	}
}

// partials returns what there is of the items that are not finished, those of
// one response if within names one, else those of the turn and of background
// commands.
func (o *owner) partials(within p.ItemID) []turn.Partial {
	var open []turn.Partial
	chunks, _ := o.journal.OpenItems(o.base) // the writer has them in memory
	for _, c := range chunks {
		id, err := p.ParseItemID(c.Item)
		if err != nil || !wanted(within, id) {
			continue
		}
		if n := len(open); n == 0 || open[n-1].Item != id {
			open = append(open, turn.Partial{Item: id, Kind: p.DeltaKind(c.Tag)})
		}
		last := &open[len(open)-1]
		if p.DeltaKind(c.Tag) == p.DeltaStderr {
			last.Stderr = append(last.Stderr, [2]int{len(last.Text), len(last.Text) + len(c.Text)})
		}
		last.Text += c.Text
	}
	return open
}

func wanted(within, id p.ItemID) bool {
	if within.Response != 0 {
		return id.Turn == within.Turn && id.Response == within.Response
	}
	return id.Turn == within.Turn || id.Turn == 0
}

// checkpointEvery is how many bytes are recorded between two checkpoints, at
// least: as many as can be read back without anybody noticing. A long history is
// saved less often, so that saving costs the same for each byte recorded.
const checkpointEvery = 128 << 10

// due reports whether a checkpoint is worth its while.
func (o *owner) due() bool { return o.grown >= max(checkpointEvery, o.saved/2) }

type saved struct {
	ID       p.ConversationID `json:"id"`
	Settings p.Settings       `json:"settings"`
	Title    string           `json:"title,omitempty"`
	Usage    p.Usage          `json:"usage"`
	Ended    p.EndReason      `json:"ended,omitempty"`
	Turn     p.TurnID         `json:"turn"`
	Inputs   p.InputID        `json:"inputs"`
	Jobs     p.BackgroundID   `json:"jobs,omitempty"`
	History  json.RawMessage  `json:"history"`
}

// checkpoint keeps the state between two turns, so that opening need not read
// everything. It can be rebuilt, so that failing to write one does no harm.
func (o *owner) checkpoint(seq p.Seq) {
	if !o.due() || o.failed != nil || seq != o.last || !o.quiet() {
		return
	}
	hist, err := o.history.Save()
	if err != nil {
		return
	}
	data, err := json.Marshal(saved{o.id, o.settings, o.title, o.usage, o.ended, o.state.Turn, o.state.LastInput(), o.state.LastBackground(), hist})
	if err != nil {
		return
	}
	o.grown, o.saved = 0, int64(len(data))
	base, j, before, written := o.base, o.journal, o.saving, make(chan struct{})
	o.saving = written
	go func() { // one short write; the owner does not wait for the disk, but for this at its end
		defer close(written)
		if before != nil {
			<-before
		}
		_ = j.Checkpoint(base, uint64(seq), data)
	}()
}

// quiet reports whether nothing goes on or waits.
func (o *owner) quiet() bool {
	s := o.state
	return !s.Active && len(s.Pending) == 0 && len(s.Background) == 0 && len(o.patches) == 0
}

// restore begins at the checkpoint, if there is one, and returns its number.
func (o *owner) restore() uint64 {
	found := o.journal.Recovery()
	var in saved
	if found.Checkpoint == nil || json.Unmarshal(found.Checkpoint, &in) != nil {
		return 0
	}
	hist, err := history.Restore(in.History)
	if err != nil {
		return 0
	}
	o.history, o.id, o.settings, o.title = hist, in.ID, in.Settings, in.Title
	o.usage, o.ended, o.last = in.Usage, in.Ended, p.Seq(found.CheckpointSeq)
	o.state = turn.Restore(in.Turn, in.Inputs, in.Jobs)
	o.saved = int64(len(found.Checkpoint))
	return found.CheckpointSeq
}
