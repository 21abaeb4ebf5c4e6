// Package notify runs the user's program when a turn has ended or waits.
package notify

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Program is the user's, nothing if it has no arguments.
type Program struct {
	Argv     []string
	When     config.NotifyWhen
	Env      func() []string
	Starting *sync.WaitGroup // of those that are being started
}

// TurnEnded runs the program with one more argument that says what ended and how.
func (n *Program) TurnEnded(s p.TurnSummary) {
	if s.Reason == p.Crashed && n.When.Recovered || s.Reason != p.Crashed && n.When.TurnEnded {
		n.run(s.Cwd, func(limit int) map[string]any { return ended(shorter(s, limit)) })
	}
}

// Waiting does the same for a turn that waits for a person or a limit.
func (n *Program) Waiting(s p.TurnSummary, why p.Body) {
	wanted := n.When.Approval
	if _, held := why.(*p.Held); held {
		wanted = n.When.Hold
	}
	if wanted {
		n.run(s.Cwd, func(limit int) map[string]any { return waiting(shorter(s, limit), why, limit) })
	}
}

// run runs the program. It is the user's: no caller waits for it, and it may outlive us.
func (n *Program) run(cwd string, notice func(limit int) map[string]any) {
	if len(n.Argv) == 0 {
		return
	}
	cmd := exec.Command(n.Argv[0], slices.Concat(n.Argv[1:], []string{noticeText(notice)})...)
	if _, err := os.Stat(cwd); err == nil {
		cmd.Dir = cwd // else ours: that it is gone is no reason not to notify
	}
	// A Ctrl-C in our terminal is not for it. A session of its own would make it
	// look like something that a command left behind.
	cmd.Env = n.Env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.Starting.Add(1)
	go func() { // ended by the end of the program, or ours
		err := cmd.Start()
		n.Starting.Done()
		if err == nil {
			_ = cmd.Wait() // only so that it does not stay a zombie
		}
	}()
}

// maxNotice is less than any system takes as one argument.
const maxNotice = 120 << 10

// noticeText is the argument. Texts that make it too long lose their middle.
func noticeText(notice func(limit int) map[string]any) string {
	text, err := json.Marshal(notice(math.MaxInt))
	for limit := maxNotice / 4; err == nil && len(text) > maxNotice && limit > 0; limit /= 2 {
		text, err = json.Marshal(notice(limit)) // strings: no error can happen
	}
	return string(text)
}

// shorter is s with no text much longer than limit.
func shorter(s p.TurnSummary, limit int) p.TurnSummary {
	if limit == math.MaxInt {
		return s
	}
	s.Last = p.CutMiddle(s.Last, limit)
	s.Inputs = slices.Clone(s.Inputs[max(0, len(s.Inputs)-maxInputs):])
	for i := range s.Inputs {
		s.Inputs[i] = p.CutMiddle(s.Inputs[i], limit)
	}
	if s.Error != nil {
		s.Error = &p.Error{Message: p.CutMiddle(s.Error.Message, limit)}
	}
	return s
}

// maxInputs is how many messages, the latest ones, an argument that is too
// long keeps.
const maxInputs = 100

// waiting is what the program gets when a turn waits.
func waiting(s p.TurnSummary, why p.Body, limit int) map[string]any {
	m := about(s)
	switch b := why.(type) {
	case *p.ApprovalRequested:
		m["type"], m["call-id"], m["kind"] = "approval-requested", b.Call, b.Kind
		if len(b.Command) > 0 {
			m["command"] = p.CutMiddle(transcript.CommandLine(b.Command), limit)
		}
		if b.Reason != "" {
			m["reason"] = p.CutMiddle(b.Reason, limit)
		}
	case *p.ElicitationRequested:
		m["type"], m["server"], m["message"] = "elicitation-requested", b.Server, p.CutMiddle(b.Message, limit)
	case *p.Held:
		m["type"], m["error"] = "turn-held", p.CutMiddle(b.Error.Message, limit)
		if !b.Until.IsZero() {
			m["until"] = b.Until
		}
	}
	return m
}

// ended is what the program gets when a turn has ended, in the form that programs written
// for Codex read, and with a type of its own for a turn that did not complete.
func ended(s p.TurnSummary) map[string]any {
	m := about(s)
	m["type"] = "agent-turn-complete"
	if s.Reason != p.Completed {
		m["type"], m["reason"] = "agent-turn-aborted", s.Reason
	}
	if s.Error != nil {
		m["error"] = s.Error.Message
	}
	return m
}

// about says which turn it is, and what was said in it.
func about(s p.TurnSummary) map[string]any {
	inputs := s.Inputs
	if inputs == nil {
		inputs = []string{}
	}
	m := map[string]any{
		"thread-id": s.Conversation, "turn-id": strconv.Itoa(int(s.Turn)), "cwd": s.Cwd,
		"input-messages": inputs, "last-assistant-message": nil,
	}
	if s.Last != "" {
		m["last-assistant-message"] = s.Last
	}
	return m
}
