package conversation

import (
	"context"
	"fmt"

	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// mostJobs is how many background commands a conversation may have, those that
// ended and can still be asked for their last words among them.
const mostJobs = 64

// A keep is a tool's wish that its command go on as a background command.
type keep struct {
	started p.BackgroundStarted
	job     tool.Background
	answer  chan kept // has room for one
}

type kept struct {
	id    p.BackgroundID
	write func(p.DeltaKind, string)
	err   error
}

// keep takes a command over from the call that started it. Its tool is told when
// that is durable, so that the model never hears of a command that a crash could
// leave unknown.
func (o *owner) keep(k *keep) {
	if err := o.room(); err != nil {
		k.answer <- kept{err: err}
		return
	}
	if err := o.stepErr(turn.Keep{Started: k.started}); err != nil {
		k.answer <- kept{err: err}
		return
	}
	id := o.state.LastBackground
	o.jobs[id] = k.job
	item := id.Item().String()
	scope := o.journal.Open(item)
	conv := o.conv
	go func() { // ended by stopBackground; over waits for it
		res, stopped := k.job.Wait()
		scope.Seal()
		conv.send(message{happen: turn.BackgroundDone{ID: id, Stopped: stopped, Result: res}})
	}()
	o.replies = append(o.replies, reply{o.state.Seq, func(err error) {
		k.answer <- kept{id, func(kind p.DeltaKind, text string) { scope.Write(item, string(kind), text) }, err}
	}})
	o.durable()
}

// room forgets the oldest background command that has ended if there are too
// many, and says so if all of them run.
func (o *owner) room() error {
	if len(o.jobs) < mostJobs {
		return nil
	}
	running := map[p.BackgroundID]bool{}
	for _, b := range o.state.Background {
		running[b.ID] = true
	}
	for id := p.BackgroundID(1); id <= o.state.LastBackground; id++ {
		if o.jobs[id] != nil && !running[id] {
			delete(o.jobs, id)
			return nil
		}
	}
	return fmt.Errorf("there are %d background commands already", mostJobs)
}

func (o *owner) killBackground(id p.BackgroundID) error {
	for _, b := range o.state.Background {
		if b.ID == id {
			o.stopBackground([]p.BackgroundStarted{b}, &StoppedError{p.Interrupted})
			return nil
		}
	}
	return turn.ErrNoBackground
}

func (o *owner) stopBackground(list []p.BackgroundStarted, cause error) {
	for _, b := range list {
		if job := o.jobs[b.ID]; job != nil { // after a crash there is none
			job.Stop(cause)
		}
	}
}

// endBackground stops all background commands, because the conversation closes.
func (o *owner) endBackground() {
	if len(o.state.Background) == 0 {
		return
	}
	o.stopBackground(o.state.Background, &StoppedError{p.Interrupted})
	o.startStop()
}

// Keep hands a command over to the conversation.
func (h *host) Keep(ctx context.Context, started p.BackgroundStarted, job tool.Background) (p.BackgroundID, func(p.DeltaKind, string), error) {
	started.Call = h.call
	k := &keep{started, job, make(chan kept, 1)}
	if !h.conv.send(message{turn: h.call.Turn, keep: k}) {
		return 0, nil, ErrClosed
	}
	select { // not ended by ctx: once it is taken over, it is not the call's to end
	case a := <-k.answer:
		return a.id, a.write, a.err
	case <-h.conv.done:
		return 0, nil, ErrClosed
	}
}
