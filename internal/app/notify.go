package app

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

// A notifier runs the user's program when a turn has ended.
type notifier struct {
	argv     []string
	env      func() []string
	starting *sync.WaitGroup // of those that are being started
}

// ended runs the program with one more argument that says what ended and how.
// It is the user's: nobody waits for it, and it may outlive us.
func (n *notifier) ended(s conversation.TurnSummary) {
	if len(n.argv) == 0 {
		return
	}
	cmd := exec.Command(n.argv[0], slices.Concat(n.argv[1:], []string{noticeText(s)})...)
	if _, err := os.Stat(s.Cwd); err == nil {
		cmd.Dir = s.Cwd // else ours: that it is gone is no reason not to tell
	}
	// A Ctrl-C in our terminal is not for it. A session of its own would make it
	// look like something that a command left behind.
	cmd.Env = n.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.starting.Add(1)
	go func() { // ended by the end of the program, or ours
		err := cmd.Start()
		n.starting.Done()
		if err == nil {
			_ = cmd.Wait() // only so that it does not stay a zombie
		}
	}()
}

// noticeMost is less than any system takes as one argument.
const noticeMost = 120 << 10

// noticeText is the argument. Texts that make it too long lose their middle.
func noticeText(s conversation.TurnSummary) string {
	text, err := json.Marshal(notice(s))
	for most := noticeMost / 4; err == nil && len(text) > noticeMost && most > 0; most /= 2 {
		text, err = json.Marshal(notice(shorter(s, most))) // strings: no error can happen
	}
	return string(text)
}

// shorter is s with no text much longer than most.
func shorter(s conversation.TurnSummary, most int) conversation.TurnSummary {
	s.Last = p.CutMiddle(s.Last, most)
	s.Inputs = slices.Clone(s.Inputs[max(0, len(s.Inputs)-noticeInputs):])
	for i := range s.Inputs {
		s.Inputs[i] = p.CutMiddle(s.Inputs[i], most)
	}
	if s.Error != nil {
		s.Error = &p.Error{Message: p.CutMiddle(s.Error.Message, most)}
	}
	return s
}

// noticeInputs is how many messages, the latest ones, an argument that is too
// long keeps.
const noticeInputs = 100

// notice is what the program is told, in the form that programs written for
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
