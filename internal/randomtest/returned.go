package randomtest

import (
	p "github.com/fermata-agent/fermata/protocol"
)

// resolveReturned sends, takes or drops a message that was returned, or one that was not.
func (s *scenario) resolveReturned(submit func(p.Op) p.Receipt) {
	snap, err := s.engine.Resume(s.ctx, s.id)
	if err != nil {
		return
	}
	ids := []p.InputID{p.InputID(s.r.IntN(10))}
	if n := len(snap.Returned); n > 0 && s.r.IntN(4) > 0 {
		ids = []p.InputID{snap.Returned[s.r.IntN(n)].Input}
	}
	ops := []p.Op{
		p.UserTurn{Returned: ids, WhenBusy: p.Queue},
		p.UserTurn{Content: p.Text("again"), Returned: ids},
		p.ResolveReturned{Inputs: ids, As: p.ResolvedTaken},
		p.ResolveReturned{Inputs: ids, As: p.ResolvedDropped},
	}
	submit(ops[s.r.IntN(len(ops))])
}

func countResolved(all []p.Event, count map[p.Resolution]int) {
	for _, e := range all {
		if b, ok := e.Body.(*p.ReturnedResolved); ok {
			count[b.As] += len(b.Inputs)
		}
	}
}

// accounted checks that each message that was accepted was delivered, or is returned until it is sent, taken or
// dropped: whatever happened in between. Nothing else is returned.
func (s *scenario) accounted(all []p.Event) {
	const waits, delivered, returned, deleted, resolved = "waiting", "delivered", "returned", "deleted", "resolved"
	is, active := map[p.InputID]string{}, false
	for _, e := range all {
		switch b := e.Body.(type) {
		case *p.TurnStarted:
			active = true
		case *p.TurnEnded:
			active = false
		case *p.InputAccepted:
			is[b.Input] = waits
		case *p.UserMessage:
			is[b.Input] = delivered
		case *p.InputReturned:
			for _, in := range b.Inputs {
				is[in.Input] = returned
				if in.Deleted {
					is[in.Input] = deleted
				}
			}
		case *p.ReturnedResolved:
			for _, in := range b.Inputs {
				is[in] = resolved
			}
		}
	}
	for id := range s.accepted {
		if (is[id] == "" || is[id] == waits && !active) && !s.weather.fails {
			s.t.Errorf("message %d was accepted, and neither delivered nor returned\n%s", id, around(all, 0))
		}
	}
	snap, err := s.engine.Resume(s.ctx, s.id)
	if err != nil || s.weather.fails {
		return
	}
	for _, in := range snap.Returned {
		if is[in.Input] != returned {
			s.t.Errorf("message %d is offered as returned, and was %s\n%s", in.Input, is[in.Input], around(all, 0))
		}
		delete(is, in.Input)
	}
	for id, state := range is {
		if state == returned {
			s.t.Errorf("message %d was returned, and is not offered\n%s", id, around(all, 0))
		}
	}
}
