package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/fold"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// Start begins a new conversation in an empty journal. It returns when that is
// durable. ctx gives values only; its end does not end the conversation.
func Start(ctx context.Context, cfg Config, j journal.Journal) (_ *Conversation, err error) {
	defer cfg.failOpening(j, &err)
	o := newOwner(ctx, cfg, j)
	o.recordOutsideTurn(&p.ConversationStarted{ID: o.cfg.ID, Version: o.cfg.Version, Settings: o.cfg.Settings})
	return o.begin(ctx)
}

// Open resumes a conversation: it ends what a crash left open, records what had
// to be repaired, and starts the owner.
func Open(ctx context.Context, cfg Config, j journal.Journal) (_ *Conversation, err error) {
	defer cfg.failOpening(j, &err)
	o := newOwner(ctx, cfg, j)
	if err = o.replay(); err != nil {
		j.Close()
		return nil, err
	}
	o.recover(ctx)
	return o.begin(ctx)
}

// failOpening makes a panic while a conversation is opened an error of that, and releases the journal.
func (cfg Config) failOpening(j journal.Journal, err *error) {
	value := recover()
	if value == nil {
		return
	}
	if cfg.Panicked == nil {
		panic(value)
	}
	*err = cfg.Panicked.Caught(value)
	j.Close()
}

func newOwner(ctx context.Context, cfg Config, j journal.Journal) *owner {
	c := &Conversation{
		journal: j, ops: make(chan request), inbox: make(chan message),
		unfollow: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}), forClient: cfg.For,
	}
	cfg = cfg.withDefaults()
	return &owner{
		base: ctx, conv: c, own: cfg, cfg: cfg, journal: j, state: fold.New(),
		background: map[p.BackgroundID]tool.Background{},
	}
}

// begin starts the owner, and waits until what opening recorded is durable.
func (o *owner) begin(ctx context.Context) (*Conversation, error) {
	if o.state.Active { // it waits, for an approval or a limit: its tools are needed when that comes
		o.ctx, o.cancel = context.WithCancelCause(context.WithoutCancel(o.base))
		o.makeTools()
		o.startHold()
	}
	opened := make(chan error, 1)
	o.replies = append(o.replies, reply{o.state.Seq, func(err error) { opened <- err }})
	o.durable()
	go o.run() // ended by Close, Kill or a failed journal; waited for through done
	select {
	case err := <-opened:
		if err != nil {
			o.conv.Kill() // it would stay open
			return nil, err
		}
		return o.conv, nil
	case <-ctx.Done():
		o.conv.Kill()
		return nil, context.Cause(ctx)
	}
}

// replay folds what is in the journal.
func (o *owner) replay() error {
	after := o.restore()
	for {
		recs, err := o.journal.Read(o.base, after, 1000)
		if err != nil {
			return fmt.Errorf("read the conversation: %w", err)
		}
		if len(recs) == 0 {
			return nil
		}
		for _, r := range recs {
			after = r.Seq
			body, err := p.DecodeBody(r.Kind, r.Body)
			if err != nil { // a later version's form: keep it, and continue without
				body = &p.Unknown{Kind: r.Kind, JSON: r.Body}
			}
			o.state.Evolve(p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Turn: p.TurnID(r.Turn), Body: body})
			o.unsavedBytes += int64(len(r.Body))
		}
	}
}

// recover ends what a crash left open and records what had to be repaired.
func (o *owner) recover(ctx context.Context) {
	found := o.journal.Recovery()
	if o.state.ID == "" {
		o.recordOutsideTurn(&p.ConversationStarted{ID: o.cfg.ID, Version: o.cfg.Version, Settings: o.cfg.Settings})
	}
	o.recovered = DescribeRecovery(found)
	lost := turn.Lost{Crash: true, Open: o.partials(p.ItemID{Turn: o.state.Turn})}
	for _, left := range o.state.Processes {
		n, err := o.reclaim(ctx, left.Handle)
		lost.Killed += n
		if err != nil {
			o.recovered = append(o.recovered, fmt.Sprintf("processes of %s may still run: %v", left, err))
		}
	}
	if lost.Killed > 0 {
		o.recovered = append(o.recovered, "killed "+humanize.Count(lost.Killed, "process")+" that still ran")
	}
	settled := o.settle(&lost)
	for _, b := range o.state.Background {
		o.recovered = append(o.recovered, fmt.Sprintf("background command %d (%s) was interrupted", b.ID, strings.Join(b.Command, " ")))
	}
	interrupted := o.state.Active && !o.state.Waiting()
	o.step(lost)
	if interrupted {
		o.recovered = append(o.recovered, fmt.Sprintf("turn %d was interrupted; it ended as %s", o.state.Turn, o.state.Ended))
	}
	o.recordEach(settled)
	o.repairHistory()
	if len(o.recovered) > 0 {
		o.recordOutsideTurn(&p.Notice{Text: "recovered on open: " + strings.Join(o.recovered, "; "), Warn: true})
	}
}

// DescribeRecovery describes what opening a journal had to set aside, for people.
func DescribeRecovery(r journal.Recovery) []string {
	var list []string
	if r.Torn > 0 {
		list = append(list, fmt.Sprintf("an unfinished write of %d bytes at the end was set aside", r.Torn))
	}
	for _, d := range r.Damaged {
		list = append(list, fmt.Sprintf("%d damaged bytes (%s) were set aside in %s", d.Bytes, humanize.Count(d.Records, "record"), d.File))
	}
	return list
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
	for _, id := range o.state.History.Missing() {
		if open[id] {
			continue
		}
		o.recordOutsideTurn(&p.ToolOutput{Call: id, Output: "aborted: the output was lost", Failed: true, Aborted: true, Repaired: true})
		o.recovered = append(o.recovered, fmt.Sprintf("the output of call %s was lost", id))
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
