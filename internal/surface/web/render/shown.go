package render

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	t "github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// shownHash names what was shown where. An answer repeats the hash of what it answers, so that one that reaches
// another conversation, another call or another text than its sender saw is refused.
func shownHash(id p.ConversationID, about, text string) string {
	sum := sha256.Sum256([]byte(string(id) + "\x00" + about + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ShownApproval is the hash of what a page shows of an approval.
func ShownApproval(id p.ConversationID, it *t.Item, dir string) string {
	return shownHash(id, "approval "+it.Approval.Call.String(), Question(it, dir))
}

// ShownElicitation is the hash of what a page shows of a question of an MCP server.
func ShownElicitation(id p.ConversationID, q *p.ElicitationRequested) string {
	h := &builder{}
	h.asks(q)
	return shownHash(id, "question "+q.Call.String()+" "+strconv.Itoa(q.Number), h.String())
}

// ShownUndo is the hash of what a page shows before a turn is undone.
func ShownUndo(id p.ConversationID, turn p.TurnID, diff string) string {
	return shownHash(id, "undo "+strconv.Itoa(int(turn)), diff)
}
