package follow

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

// Interrupts are the interrupts of one client that are not answered yet. Each is answered when the client's followers have
// taken the end of the turn. One that comes while another is pending may find that nothing is left to stop: it stopped
// the same turn, and has the same answer. The zero value is ready for use.
type Interrupts struct {
	mu      sync.Mutex
	pending map[p.ConversationID]*interrupted // guarded by mu
}

// interrupted is what the pending interrupts of a conversation share.
type interrupted struct {
	count int        // of those that are pending; guarded by Interrupts.mu
	stops []*stopped // guarded by Interrupts.mu
}

// A stopped turn is one that an interrupt was accepted for.
type stopped struct {
	turn p.TurnID
	over chan struct{} // closed when end and err are set
	end  p.TurnEnded
	err  error
}

// An Interrupt is one that is pending.
type Interrupt struct {
	all *Interrupts
	id  p.ConversationID
	in  *interrupted
}

// Arrive registers an interrupt when its request is read, in the order of the requests. The caller calls Over when the request
// was answered.
func (x *Interrupts) Arrive(id p.ConversationID) *Interrupt {
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.pending[id]
	if in == nil {
		in = &interrupted{}
		if x.pending == nil {
			x.pending = map[p.ConversationID]*interrupted{}
		}
		x.pending[id] = in
	}
	in.count++
	return &Interrupt{x, id, in}
}

// Over says that the interrupt was answered.
func (i *Interrupt) Over() {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	if i.in.count--; i.in.count == 0 {
		delete(i.all.pending, i.id)
	}
}

// Stop interrupts a turn, 0 being whichever runs, and returns how it ended when all followers of g have taken that. accepted
// is called when the interrupt has been accepted or refused, and before its turn has ended: the interrupts of one conversation
// are to be stopped in the order in which they came, up to there. Without a turn to stop the error is engine.ErrNothingToStop, and comes after the
// end of the last turn. ctx bounds the wait for followers, life that for the end.
func (i *Interrupt) Stop(ctx, life context.Context, g *Group, turn p.TurnID, accepted func()) (p.TurnEnded, error) {
	receipt, err := g.engine.Submit(life, i.id, p.Interrupt{Turn: turn})
	switch {
	case errors.Is(err, engine.ErrNothingToStop):
		accepted()
		return i.find(ctx, g, turn, err)
	case err != nil:
		accepted()
		return p.TurnEnded{}, err
	}
	s := i.begin(receipt.Turn)
	accepted()
	defer close(s.over)
	end, err := engine.FollowTurn(life, g.engine, i.id, receipt.Turn, receipt.Seq, nil)
	if s.end, s.err = end.End, err; err == nil {
		g.Ended(ctx, receipt.Turn)
	}
	return s.end, s.err
}

// begin registers a turn that an interrupt was accepted for.
func (i *Interrupt) begin(turn p.TurnID) *stopped {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	s := &stopped{turn: turn, over: make(chan struct{})}
	i.in.stops = append(i.in.stops, s)
	return s
}

// find returns the end of the turn that an interrupt which was pending at the same time has stopped, or else nothing.
func (i *Interrupt) find(ctx context.Context, g *Group, turn p.TurnID, nothing error) (p.TurnEnded, error) {
	i.all.mu.Lock()
	stops := slices.Clone(i.in.stops)
	i.all.mu.Unlock()
	for _, s := range slices.Backward(stops) {
		if turn != 0 && s.turn != turn {
			continue
		}
		select {
		case <-s.over:
			return s.end, s.err
		case <-ctx.Done():
			return p.TurnEnded{}, context.Cause(ctx)
		}
	}
	snap, err := g.engine.Resume(ctx, i.id)
	if err != nil {
		return p.TurnEnded{}, err
	}
	last := snap.Turn
	if snap.Active {
		last--
	}
	g.Ended(ctx, last)
	return p.TurnEnded{}, nothing
}
