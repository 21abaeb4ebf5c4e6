package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
)

// A command that goes on in the background is over for its call, and its own end is told
// when it comes, in no turn.
func TestMCPBackgroundCommand(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(modeltest.Call("c", "exec_command", `{"cmd":"echo begun; until [ -e go ]; do sleep 0.01; done; echo over; exit 3","yield_time_ms":300}`)),
		modeltest.Respond(modeltest.Say("it runs")))
	c := s.connect("-c", execFlavour)
	id := c.converse(s.work)
	c.message(3, id, "go")
	begin := msgOf(c.event("exec_command_begin"))
	end := msgOf(c.event("exec_command_end"))
	if begin["call_id"] != "c" || end["call_id"] != "c" || end["exit_code"] != 0.0 || !strings.Contains(fmt.Sprint(end["stdout"]), "begun") {
		t.Errorf("begun %v\nended %v", begin, end)
	}
	if got := msgOf(c.event("task_complete"))["last_agent_message"]; got != "it runs" {
		t.Errorf("the turn ended with %v", got)
	}
	s.file("go", "")
	told := c.event("background_event")
	contains(t, "background_event", fmt.Sprint(msgOf(told)["message"]), "background command 1 has ended (exit code 3)")
	if told["id"] != "" {
		t.Errorf("it is told of turn %v", told["id"])
	}
	c.in.Close()
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.err.String())
	}
}

// The end of the client ends what goes on in the background.
func TestMCPEndEndsTheBackground(t *testing.T) {
	t.Parallel()
	s := newMCPSite(t, "never",
		modeltest.Respond(modeltest.Call("c", "exec_command", `{"cmd":"sleep 631","yield_time_ms":250}`)), modeltest.Respond(modeltest.Say("it runs")))
	c := s.connect("-c", execFlavour)
	if text, _ := c.codexWith(1, nil); text != "it runs" {
		t.Errorf("answer %q", text)
	}
	c.in.Close()
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.err.String())
	}
	eventually(t, "nothing runs any more", func() bool { return len(traces(s.dir)) == 0 })
	s.fsck()
}
