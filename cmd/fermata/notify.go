package main

import (
	"encoding/json"
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
	starting sync.WaitGroup
}

// ended runs the program with one more argument that says what ended and how.
// It is the user's: nobody waits for it, and it may outlive us.
func (n *notifier) ended(s conversation.TurnSummary) {
	if len(n.argv) == 0 {
		return
	}
	text, err := json.Marshal(notice(s))
	if err != nil {
		return // strings: cannot happen
	}
	cmd := exec.Command(n.argv[0], slices.Concat(n.argv[1:], []string{string(text)})...)
	cmd.Dir = s.Cwd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C in our terminal is not for it
	n.starting.Add(1)
	go func() { // ended by the end of the program, or ours
		err := cmd.Start()
		n.starting.Done()
		if err == nil {
			_ = cmd.Wait() // only so that it does not stay a zombie
		}
	}()
}

// wait returns when every program has been started.
func (n *notifier) wait() { n.starting.Wait() }

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
