package tui

import (
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/engine/enginetest"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Who is asked about a tool of an MCP server can allow it for good.
func TestLastingPermissionForATool(t *testing.T) {
	store := projects(t)
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Projects = store })
		of := p.MCPTool{Server: "docs", Name: "write"}
		working(d).Question(p.ApprovalRequested{Kind: p.ApproveTool, MCP: &of, Cwd: "/w", Command: []string{"docs.write", "{}"}})
		d.wait(time.Second)
		d.sees("Allow this tool call?", "p  yes, and don't ask again for docs.write in /w")
		d.press("p")
		d.wait(time.Second)
		if list := store.Permissions("/w"); len(list) != 1 || list[0].Tool != of {
			t.Fatalf("permissions: %v", list)
		}
		e.Run().Finish("written")
		e.Request().Answer("done")
		d.wait(time.Second)
		d.say("/permissions", "enter")
		d.sees("docs.write")
		d.press("enter")
		d.wait(time.Second)
		if list := store.Permissions("/w"); len(list) != 0 {
			t.Errorf("after it was revoked: %v", list)
		}
	})
}

// The window says that somebody is waited for also while an MCP server asks something.
func TestTitleWhileAServerAsks(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		run := working(d)
		answer := questioned(d, run, nameSchema)
		if got := d.m.state().Title(); got != "● waiting · fermata" {
			t.Errorf("the window is called %q", got)
		}
		d.sees("● waiting for your answer")
		d.press("n")
		d.wait(time.Second)
		<-answer
		if got := d.m.state().Title(); got != "⠧ working · fermata" {
			t.Errorf("then the window is called %q", got)
		}
		run.Finish("thanks")
		e.Request().Answer("done")
		d.wait(time.Second)
	})
}

// Each kind of notification has a setting of its own.
func TestNotificationSettings(t *testing.T) {
	it := &transcript.Item{ID: "x"}
	all := config.Screen{Bell: true, NotifyApproval: true, NotifyHold: true, NotifyTurnEnded: true, NotifyRecovered: true}
	for name, tt := range map[string]struct {
		happen func(*model) // after an active turn was looked at
		off    func(*config.Screen)
	}{
		"approval":   {func(m *model) { m.conv.asks = append(m.conv.asks, it) }, func(s *config.Screen) { s.NotifyApproval = false }},
		"question":   {func(m *model) { m.conv.questions = append(m.conv.questions, it) }, func(s *config.Screen) { s.NotifyApproval = false }},
		"hold":       {func(m *model) { m.conv.tr.Hold = &p.Held{} }, func(s *config.Screen) { s.NotifyHold = false }},
		"turn ended": {func(m *model) { m.conv.tr.Active, m.conv.ended = false, p.Completed }, func(s *config.Screen) { s.NotifyTurnEnded = false }},
		"recovered":  {func(m *model) { m.conv.tr.Active, m.conv.ended = false, p.Crashed }, func(s *config.Screen) { s.NotifyRecovered = false }},
	} {
		cfg := &config.Config{Screen: all}
		m := newModel(t.Context(), Options{Config: cfg})
		m.conv.tr.Active = true
		before := m.watch()
		if m.notifyOf(before) != nil {
			t.Errorf("%s: notified before it", name)
		}
		tt.happen(m)
		if m.notifyOf(before) == nil {
			t.Errorf("%s: not notified", name)
		}
		if tt.off(&cfg.Screen); m.notifyOf(before) != nil {
			t.Errorf("%s: notified although it is turned off", name)
		}
	}
	cfg := &config.Config{Screen: all}
	m := newModel(t.Context(), Options{Config: cfg})
	after := engine.Snapshot{Recovered: []string{"turn 1 crashed"}}
	if m.notifyOfRecovery(engine.Snapshot{}) != nil || m.notifyOfRecovery(after) == nil {
		t.Error("opening a conversation does not say whether it was recovered")
	}
	if cfg.Screen.NotifyRecovered = false; m.notifyOfRecovery(after) != nil {
		t.Error("recovered: notified although it is turned off")
	}
}
