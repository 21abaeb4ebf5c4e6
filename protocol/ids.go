package protocol

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A ConversationID names a conversation. It is a UUIDv7, so that ids sort by
// the time of their making.
type ConversationID string

// NewConversationID makes an id that carries the time now.
func NewConversationID(now time.Time) ConversationID {
	var b [16]byte
	rand.Read(b[6:]) // never fails
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return ConversationID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// ParseConversationID checks that s has the form of an id.
func ParseConversationID(s string) (ConversationID, error) {
	h := strings.ReplaceAll(s, "-", "")
	if _, err := hex.DecodeString(h); err != nil || len(s) != 36 || len(h) != 32 ||
		s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", fmt.Errorf("%q is not a conversation id", s)
	}
	return ConversationID(strings.ToLower(s)), nil
}

// Time is when the id was made, to the millisecond.
func (id ConversationID) Time() time.Time {
	h := strings.ReplaceAll(string(id), "-", "")
	if len(h) < 12 {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(h[:12], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// A Seq numbers the durable events of one conversation: 1, 2, 3 …
type Seq uint64

// A Cursor is the number of the last event seen; 0 is before the first.
type Cursor = Seq

// A TurnID numbers the turns of one conversation: 1, 2, 3 …; 0 is no turn.
type TurnID int

// An InputID numbers the messages that clients sent to one conversation.
type InputID int

// A BackgroundID numbers the background commands of one conversation: 1, 2, 3 …
type BackgroundID int

// Item is what the output of the background command is known by. No item of a
// turn has this form.
func (id BackgroundID) Item() ItemID { return ItemID{Index: int(id)} }

// An ItemID names one item of a conversation: the turn it belongs to, the model
// response within the turn (1, 2, …; 0 for what the user said), and its place
// in that response. A call's own id is only unique within a response, because
// servers repeat them, so this is what calls are known by inside.
type ItemID struct {
	Turn     TurnID
	Response int
	Index    int
}

// A CallID is the ItemID of a call.
type CallID = ItemID

var errItemID = errors.New("want TURN.RESPONSE.INDEX")

// ParseItemID reads the form that String writes.
func ParseItemID(s string) (ItemID, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return ItemID{}, fmt.Errorf("item id %q: %w", s, errItemID)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return ItemID{}, fmt.Errorf("item id %q: %w", s, errItemID)
		}
		n[i] = v
	}
	return ItemID{TurnID(n[0]), n[1], n[2]}, nil
}

func (id ItemID) String() string {
	return strconv.Itoa(int(id.Turn)) + "." + strconv.Itoa(id.Response) + "." + strconv.Itoa(id.Index)
}

// MarshalText makes an ItemID a string such as "3.1.0" in JSON.
func (id ItemID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (id *ItemID) UnmarshalText(b []byte) error {
	v, err := ParseItemID(string(b))
	if err != nil {
		return err
	}
	*id = v
	return nil
}
