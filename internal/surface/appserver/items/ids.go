package items

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// Turns are numbered in each conversation; clients want names that no other turn of any conversation has. The name of
// a turn is the id of its conversation with the turn's number added to the last twelve digits by exclusive or, so that it
// is the same in every process and can be read back.

// TurnName is the name of a turn.
func TurnName(id p.ConversationID, turn p.TurnID) string {
	head, tail := split(id)
	return fmt.Sprintf("%s%012x", head, tail^uint64(turn))
}

// ParseTurn reads the name of a turn of a conversation.
func ParseTurn(id p.ConversationID, name string) (p.TurnID, bool) {
	head, tail := split(id)
	rest, ok := strings.CutPrefix(strings.ToLower(name), head)
	n, err := strconv.ParseUint(rest, 16, 64)
	if !ok || err != nil || len(rest) != 12 || n == tail || n^tail > 1<<31 {
		return 0, false
	}
	return p.TurnID(n ^ tail), true
}

func split(id p.ConversationID) (head string, tail uint64) {
	if len(id) != 36 {
		return string(id), 0
	}
	tail, _ = strconv.ParseUint(string(id[24:]), 16, 64) // an id is checked where it comes in
	return string(id[:24]), tail
}

// reviewRef marks the message that starts a review; what is reviewed follows.
const reviewRef = "fermata.review:"

// ReviewRef is the name of a message that starts a review.
func ReviewRef(what string) string { return reviewRef + what }

// An AskName is the id of the request for an approval. It is the same for every client and in every process, and
// another one when the same call asks again.
func AskName(id p.ConversationID, call p.CallID, seq p.Seq) string {
	return fmt.Sprintf("%s/%s/%d", id, call, seq)
}

// An ElicitName is the id of a question of an MCP server.
func ElicitName(id p.ConversationID, call p.CallID, number int) string {
	return fmt.Sprintf("%s/%s/e%d", id, call, number)
}

// An Asked is what a request was about.
type Asked struct {
	ID          p.ConversationID
	Call        p.CallID
	Elicitation int // which question of an MCP server; 0: an approval
}

// ParseAsk reads what a request was about.
func ParseAsk(name string) (a Asked, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return a, false
	}
	var errs [3]error
	a.ID, errs[0] = p.ParseConversationID(parts[0])
	a.Call, errs[1] = p.ParseItemID(parts[1])
	if n, isQuestion := strings.CutPrefix(parts[2], "e"); isQuestion {
		a.Elicitation, errs[2] = strconv.Atoi(n)
	}
	return a, errors.Join(errs[:]...) == nil
}
