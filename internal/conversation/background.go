package conversation

import (
	"context"
	"fmt"

	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// maxBackground is how many background commands a conversation may have, counting
// those that have ended and whose remaining output can still be read.
const maxBackground = 64

// A keepRequest asks the owner to keep the command of a call running as a
// background command.
type keepRequest struct {
	started p.BackgroundStarted
	job     tool.Background
	answer  chan keepAnswer // has room for one
}

type keepAnswer struct {
	id    p.BackgroundID
	write func(p.DeltaKind, string)
	err   error
}

// keep takes a command over from the call that started it. The tool gets its answer
// when that is durable, so that the model never learns of a background command
// that a crash could leave unrecorded.
func (o *owner) keep(k *keepRequest) {
	if err := o.makeRoom(); err != nil {
		k.answer <- keepAnswer{err: err}
		return
	}
	if err := o.stepErr(turn.Keep{Started: k.started}); err != nil {
		k.answer <- keepAnswer{err: err}
		return
	}
	id := o.state.LastBackground
	o.background[id] = k.job
	item := id.Item().String()
	scope := o.journal.Open(item)
	conv := o.conv
	go func() { // ended by stopBackground; over waits for it
		res, stopped := k.job.Wait()
		scope.Seal()
		conv.send(message{input: turn.BackgroundDone{ID: id, Stopped: stopped, Result: res}})
	}()
	o.replies = append(o.replies, reply{o.state.Seq, func(err error) {
		k.answer <- keepAnswer{id, func(kind p.DeltaKind, text string) { scope.Write(item, string(kind), text) }, err}
	}})
	o.durable()
}

// makeRoom forgets the oldest background command that has ended if there are too
// many. It fails if all of them run.
func (o *owner) makeRoom() error {
	if len(o.background) < maxBackground {
		return nil
	}
	running := map[p.BackgroundID]bool{}
	for _, b := range o.state.Background {
		running[b.ID] = true
	}
	for id := p.BackgroundID(1); id <= o.state.LastBackground; id++ {
		if o.background[id] != nil && !running[id] {
			delete(o.background, id)
			return nil
		}
	}
	return fmt.Errorf("there are %d background commands already", maxBackground)
}

func (o *owner) stopBackground(list []p.BackgroundStarted, cause error) {
	for _, b := range list {
		if job := o.background[b.ID]; job != nil { // after a crash there is none
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

// Keep makes the conversation responsible for the command of a call.
func (h *host) Keep(ctx context.Context, started p.BackgroundStarted, job tool.Background) (p.BackgroundID, func(p.DeltaKind, string), error) {
	started.Call = h.call
	k := &keepRequest{started, job, make(chan keepAnswer, 1)}
	if !h.conv.send(message{turn: h.call.Turn, keep: k}) {
		return 0, nil, ErrClosed
	}
	select { // not ended by ctx: once kept, the command no longer belongs to the call
	case a := <-k.answer:
		return a.id, a.write, a.err
	case <-h.conv.done:
		return 0, nil, ErrClosed
	}
}
