package screen

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// Each kind of notification has a setting.
func TestNotificationSettings(t *testing.T) {
	all := config.Screen{Bell: true, NotifyApproval: true, NotifyHold: true, NotifyTurnEnded: true, NotifyRecovered: true}
	before := Watched{Active: true, Live: true}
	for name, tt := range map[string]struct {
		now Watched // after an active turn was looked at
		off func(*config.Screen)
	}{
		"approval":   {Watched{Active: true, Approvals: 1}, func(s *config.Screen) { s.NotifyApproval = false }},
		"question":   {Watched{Active: true, Questions: 1}, func(s *config.Screen) { s.NotifyApproval = false }},
		"hold":       {Watched{Active: true, Held: true}, func(s *config.Screen) { s.NotifyHold = false }},
		"turn ended": {Watched{Ended: p.Completed}, func(s *config.Screen) { s.NotifyTurnEnded = false }},
		"recovered":  {Watched{Ended: p.Crashed}, func(s *config.Screen) { s.NotifyRecovered = false }},
	} {
		n := Notifier{Config: all}
		if n.Compare(before, before) != nil {
			t.Errorf("%s: notified before it", name)
		}
		if n.Compare(before, tt.now) == nil {
			t.Errorf("%s: not notified", name)
		}
		if n.Compare(Watched{Active: true}, tt.now) != nil {
			t.Errorf("%s: notified of what happened long ago", name)
		}
		if tt.off(&n.Config); n.Compare(before, tt.now) != nil {
			t.Errorf("%s: notified although it is turned off", name)
		}
	}
	n := Notifier{Config: all}
	if n.Recovered() == nil {
		t.Error("opening a conversation does not say that it was recovered")
	}
	if n.Config.NotifyRecovered = false; n.Recovered() != nil {
		t.Error("recovered: notified although it is turned off")
	}
}
