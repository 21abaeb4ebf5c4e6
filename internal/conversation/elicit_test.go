package conversation

import (
	"errors"
	"testing"
)

// A question may be answered and then given up by its tool, which no longer waits: the
// owner must not wait for it.
func TestASecondReplyDoesNotBlock(t *testing.T) {
	e := &elicitation{answer: make(chan elicited, 1)}
	e.reply(elicited{})
	e.reply(elicited{err: errors.New("late")})
	if a := <-e.answer; a.err != nil {
		t.Errorf("%+v", a)
	}
}
