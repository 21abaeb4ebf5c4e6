package fsck

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	p "github.com/fermata-agent/fermata/protocol"
)

// giveBackStaying returns messages until something becomes of them.
func giveBackStaying(inputs ...p.InputID) p.Body {
	b := giveBack(inputs...).(*p.InputReturned)
	for i := range b.Inputs {
		b.Inputs[i].Stays = true
	}
	return b
}

// cutReturning is an interrupted end after which so many messages are returned.
func cutReturning(messages int) p.Body {
	return &p.TurnEnded{Reason: p.Interrupted, Returned: messages}
}

func resolved(as p.Resolution, inputs ...p.InputID) p.Body {
	return at{Body: &p.ReturnedResolved{Inputs: inputs, As: as}, turn: noTurn}
}

func sentBy(message p.InputID, inputs ...p.InputID) p.Body {
	return at{Body: &p.ReturnedResolved{Inputs: inputs, As: p.ResolvedSent, Message: message}, turn: noTurn}
}

func TestReturnedMessages(t *testing.T) {
	for name, log := range map[string][]p.Body{
		"returned, and stays so":                       until(accept(2), over, stop, giveBackStaying(2), cutReturning(1)),
		"returned, then taken":                         until(accept(2), over, stop, giveBackStaying(2), cutReturning(1), resolved(p.ResolvedTaken, 2)),
		"returned, sent, dropped":                      until(accept(2), accept(3), giveBackStaying(2, 3), accept(4), sentBy(4, 2), resolved(p.ResolvedDropped, 3), giveBack(4), over, completed),
		"returned by an earlier version, then dropped": until(accept(2), over, stop, giveBack(2), cut, resolved(p.ResolvedDropped, 2)),
		"counted by an earlier version":                until(accept(2), over, stop, giveBackStaying(2), cut),
	} {
		if got := check(log...); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPlantedFaultsOfReturnedMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  []p.Body
		want []string
	}{
		{
			"messages: taken twice", until(accept(2), giveBackStaying(2), resolved(p.ResolvedTaken, 2), resolved(p.ResolvedDropped, 2), over, completed),
			[]string{"event 8: messages: message 2 is dropped, and was sent, taken or dropped before"},
		},
		{
			"messages: taken and not returned", until(accept(2), resolved(p.ResolvedTaken, 2), giveBack(2), over, completed),
			[]string{"event 6: messages: message 2 is taken and was not returned"},
		},
		{
			"messages: taken and deleted", until(accept(2), &p.InputReturned{Inputs: []p.ReturnedInput{{Input: 2, Deleted: true}}}, resolved(p.ResolvedTaken, 2), over, completed),
			[]string{"event 7: messages: message 2 is taken and was not returned"},
		},
		{
			"messages: none taken", until(resolved(p.ResolvedTaken), over, completed),
			[]string{"event 5: messages: no returned message is named"},
		},
		{
			"messages: sent by one that is not there", until(accept(2), giveBackStaying(2), sentBy(7, 2), over, completed),
			[]string{"event 7: messages: returned messages are sent by message 7, which was not accepted"},
		},
		{
			"messages: sent by itself", until(accept(2), giveBackStaying(2), sentBy(2, 2), over, completed),
			[]string{"event 7: messages: returned messages are sent by message 2, which was not accepted"},
		},
		{
			"messages: dropped by a message", until(accept(2), giveBackStaying(2), at{Body: &p.ReturnedResolved{Inputs: []p.InputID{2}, As: p.ResolvedDropped, Message: 1}, turn: noTurn}, over, completed),
			[]string{"event 7: messages: returned messages are dropped by message 1"},
		},
		{
			"ends: miscounts", until(accept(2), accept(3), over, stop, giveBackStaying(2, 3), cutReturning(1)),
			[]string{"event 10: ends: turn 1 counts 1 returned messages, 2 are"},
		},
	} {
		if diff := cmp.Diff(tt.want, check(tt.log...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
