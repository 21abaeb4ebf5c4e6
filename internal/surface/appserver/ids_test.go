package appserver

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	p "github.com/fermata-agent/fermata/protocol"
)

func checkIDs(t *testing.T, id p.ConversationID, turn p.TurnID, other string) {
	t.Helper()
	turnName := items.TurnName(id, turn)
	if got, ok := items.ParseTurn(id, turnName); !ok || got != turn || turnName == string(id) {
		t.Errorf("turn %d of %s is %s, which is %d, %v", turn, id, turnName, got, ok)
	}
	if _, err := p.ParseConversationID(turnName); err != nil {
		t.Errorf("the name of a turn is no UUID: %v", err)
	}
	if got, ok := items.ParseTurn(id, other); ok && items.TurnName(id, got) != other {
		t.Errorf("%q is turn %d", other, got)
	}
	call := p.CallID{Turn: turn, Response: 2, Index: 3}
	for name, want := range map[string]items.Asked{
		items.AskName(id, call, 7): {ID: id, Call: call}, items.ElicitName(id, call, 2): {ID: id, Call: call, Elicitation: 2},
	} {
		if got, ok := items.ParseAsk(name); !ok || got != want {
			t.Errorf("%s is read as %+v, %v", name, got, ok)
		}
	}
}

func TestIDs(t *testing.T) {
	id := p.ConversationID("01a1e3a1-2176-725a-9c46-eb164d150ff5")
	for _, turn := range []p.TurnID{1, 2, 255, 1 << 20} {
		checkIDs(t, id, turn, "")
	}
	for _, name := range []string{"", "x", string(id), "01a1e3a1-2176-725a-9c46-ffffffffffff", "01a1e3a2-2176-725a-9c46-eb164d150ff4"} {
		if turn, ok := items.ParseTurn(id, name); ok {
			t.Errorf("%q is turn %d", name, turn)
		}
	}
}
