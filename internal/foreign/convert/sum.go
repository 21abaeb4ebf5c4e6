package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign"
	p "github.com/fermata-agent/fermata/protocol"
)

// Sum is a checksum of steps: two readings of a session that agree have the same.
func Sum(steps []foreign.Step) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, s := range steps {
		_ = enc.Encode(s) // texts and numbers: cannot fail
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ConversationID returns the id of the conversation that a session becomes, always the same, so that importing it again
// finds it. part names what is imported beside the session itself: a branch, or a later state.
func ConversationID(s foreign.Session, part string) p.ConversationID {
	sum := sha256.Sum256([]byte(string(s.Agent) + "\n" + s.ID + "\n" + part))
	at := s.Started
	if at.IsZero() { // the time of the file would change with every look
		at = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	id := p.NewConversationID(at)
	h := hex.EncodeToString(sum[:])
	// The time stays, with the marks of the version; the rest is the session's.
	return p.ConversationID(string(id[:15]) + h[:3] + "-8" + h[3:6] + "-" + h[6:18])
}
