package notify

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// One argument has a limit that a long message exceeds, all the more if it has to
// be written with escapes.
func TestNoticeFitsIntoAnArgument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b", 20_000)
	s := p.TurnSummary{
		Cwd: "/", Reason: p.Failed, Inputs: []string{"first"}, Last: "begin" + long + "end", Error: &p.Error{Message: long},
	}
	for range 200 {
		s.Inputs = append(s.Inputs, long)
	}
	s.Inputs = append(s.Inputs, "last")
	text := noticeText(func(limit int) map[string]any { return ended(shorter(s, limit)) })
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil || len(text) > maxNotice {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	inputs := m["input-messages"].([]any)
	if last := m["last-assistant-message"].(string); !strings.HasPrefix(last, "begin") || !strings.HasSuffix(last, "end") || inputs[len(inputs)-1] != "last" {
		t.Errorf("%.200s", text)
	}
}

// The program is run for what the settings name.
func TestWhenTheProgramIsRun(t *testing.T) {
	t.Parallel()
	var s p.TurnSummary
	crashed := p.TurnSummary{Reason: p.Crashed}
	for _, c := range []struct {
		name string
		off  func(*config.NotifyWhen)
		run  func(*Program)
	}{
		{"approval", func(w *config.NotifyWhen) { w.Approval = false }, func(n *Program) { n.Waiting(s, &p.ApprovalRequested{}) }},
		{"question", func(w *config.NotifyWhen) { w.Approval = false }, func(n *Program) { n.Waiting(s, &p.ElicitationRequested{}) }},
		{"hold", func(w *config.NotifyWhen) { w.Hold = false }, func(n *Program) { n.Waiting(s, &p.Held{}) }},
		{"end", func(w *config.NotifyWhen) { w.TurnEnded = false }, func(n *Program) { n.TurnEnded(s) }},
		{"crash", func(w *config.NotifyWhen) { w.Recovered = false }, func(n *Program) { n.TurnEnded(crashed) }},
	} {
		for _, on := range []bool{true, false} {
			var starting sync.WaitGroup
			runs := 0
			n := &Program{
				Argv: []string{"true"}, When: config.NotifyWhen{Approval: true, Hold: true, TurnEnded: true, Recovered: true}, Starting: &starting,
				Env: func() []string { runs++; return nil }, // asked for when it is run
			}
			if !on {
				c.off(&n.When)
			}
			c.run(n)
			starting.Wait()
			if runs != map[bool]int{true: 1}[on] {
				t.Errorf("%s, %t: run %d times", c.name, on, runs)
			}
		}
	}
}

func TestNoticeOfWaiting(t *testing.T) {
	t.Parallel()
	s := p.TurnSummary{Conversation: "c", Turn: 3, Cwd: "/w", Inputs: []string{"do it"}}
	for want, why := range map[string]p.Body{
		`"command":"make 'a b'","cwd":"/w","input-messages":["do it"],"kind":"command"`: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"make", "a b"}},
		`"message":"Which?","server":"files","thread-id":"c"`:                           &p.ElicitationRequested{Server: "files", Message: "Which?"},
		`"error":"too many requests"`:                                                   &p.Held{Error: p.Error{Message: "too many requests"}},
	} {
		got := noticeText(func(limit int) map[string]any { return waiting(shorter(s, limit), why, limit) })
		if !strings.Contains(got, want) {
			t.Errorf("%s: want %s", got, want)
		}
	}
}
