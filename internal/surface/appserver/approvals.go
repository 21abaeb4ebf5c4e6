package appserver

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
)

// reply takes a client's answer to an approval or a question. The id says what it is about, and the engine takes the first answer. Others,
// and answers to what is no longer open, are ignored.
func (c *conn) reply(id, result json.RawMessage, err error) {
	var name string
	if json.Unmarshal(id, &name) != nil {
		return
	}
	about, ok := items.ParseAsk(name)
	if !ok {
		return
	}
	sub := c.follows(about.ID)
	if sub == nil {
		return
	}
	offer, open := sub.isOpen(name)
	if !open {
		return // it was not asked
	}
	answer := about.Answer(offer, result, err)
	if answer.Allow != nil {
		if err := c.s.o.Allow(*answer.Allow); err != nil {
			answer.Problem = fmt.Sprintf("allowed this time only, since `%s` could not be saved: %v", answer.Allow, err)
		}
	}
	if answer.Problem != "" {
		c.remark(about.ID, []string{answer.Problem})
	}
	if _, err := c.s.o.Engine.Submit(c.life, about.ID, answer.Op); err != nil { // another client may have answered first
		c.s.o.Log.Debug("answer", "error", err)
	}
}
