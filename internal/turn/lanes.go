package turn

import (
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Lane says what a call may run beside. Calls in different lanes run side by side;
// those in one lane run one at a time and in order. Three lanes are special. The others have names of
// their own, such as that of the one thing that their calls use.
type Lane string

const (
	// Alone is a barrier, for calls that may change what others see: such a call waits for every
	// call before it, and every later call waits for it.
	Alone Lane = ""

	// Beside is for calls that do not disturb each other.
	Beside Lane = "beside"

	// Asks is for calls that have to be approved before they run. They ask one at a time, while others
	// run; one that was approved runs alone.
	Asks Lane = "asks"
)

// DefaultParallel is how many calls run at the same time, unless the user says otherwise.
const DefaultParallel = 8

// lane is that of an open call. A call that has begun keeps the lane in which it did.
func (d *decision) lane(c OpenCall) Lane {
	switch {
	case c.Stage != pending:
		return c.Lane
	case c.Grant != "" || d.env.Lane == nil || d.env.MaxParallel <= 1:
		return Alone
	}
	return d.env.Lane(c.Call)
}

// startCalls starts the open calls that may run now. They are started in order; one that has to wait for its
// lane is overtaken by calls in other lanes, and nothing overtakes a barrier.
func (d *decision) startCalls() {
	var before []Lane // lanes of the open calls before the one that is looked at
	asks := d.state.any(asking)
	running := d.state.count(running)
	for i, c := range d.state.Calls {
		lane := d.lane(c)
		if lane == Alone {
			if i == 0 && c.Stage == pending && running == 0 {
				d.start(c, lane)
			}
			return
		}
		taken := lane != Beside && slices.Contains(before, lane) || lane == Asks && asks
		before = append(before, lane)
		if c.Stage != pending || taken {
			continue
		}
		if running >= d.env.MaxParallel {
			return
		}
		d.start(c, lane)
		running++
	}
}

func (d *decision) start(c OpenCall, lane Lane) {
	d.add(&p.CallStarted{Call: c.ID, Grant: c.Grant, Lane: string(lane)})
}
