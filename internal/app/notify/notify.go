// Package notify runs the user's program when a turn has ended.
package notify

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/fermata-agent/fermata/internal/conversation"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Program is the user's, nothing if it has no arguments.
type Program struct {
	Argv     []string
	Env      func() []string
	Starting *sync.WaitGroup // of those that are being started
}

// TurnEnded runs the program with one more argument that says what ended and how.
// It is the user's: nobody waits for it, and it may outlive us.
func (n *Program) TurnEnded(s conversation.TurnSummary) {
	if len(n.Argv) == 0 {
		return
	}
	cmd := exec.Command(n.Argv[0], slices.Concat(n.Argv[1:], []string{noticeText(s)})...)
	if _, err := os.Stat(s.Cwd); err == nil {
		cmd.Dir = s.Cwd // else ours: that it is gone is no reason not to notify
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
func noticeText(s conversation.TurnSummary) string {
	text, err := json.Marshal(notice(s))
	for limit := maxNotice / 4; err == nil && len(text) > maxNotice && limit > 0; limit /= 2 {
		text, err = json.Marshal(notice(shorter(s, limit))) // strings: no error can happen
	}
	return string(text)
}

// shorter is s with no text much longer than limit.
func shorter(s conversation.TurnSummary, limit int) conversation.TurnSummary {
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

// notice is what the program gets, in the form that programs written for
// Codex read, and with a type of its own for a turn that did not complete.
func notice(s conversation.TurnSummary) map[string]any {
	inputs := s.Inputs
	if inputs == nil {
		inputs = []string{}
	}
	m := map[string]any{
		"type": "agent-turn-complete", "thread-id": s.Conversation, "turn-id": strconv.Itoa(int(s.Turn)), "cwd": s.Cwd,
		"input-messages": inputs, "last-assistant-message": nil,
	}
	if s.Last != "" {
		m["last-assistant-message"] = s.Last
	}
	if s.Reason != p.Completed {
		m["type"], m["reason"] = "agent-turn-aborted", s.Reason
	}
	if s.Error != nil {
		m["error"] = s.Error.Message
	}
	return m
}
