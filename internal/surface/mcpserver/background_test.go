package mcpserver

import (
	"strings"
	"testing"
	"testing/synctest"

	p "github.com/fermata-agent/fermata/protocol"
)

// keeps lets a codex call leave a command in the background.
func keeps(t *testing.T, c *client, leave func()) {
	t.Helper()
	m := c.e.Request()
	m.Usage = nil
	m.Call("call_1", "work", "{}")
	m.End()
	leave()
	m = c.e.Request()
	m.Usage = nil
	m.Answer("it runs")
}

// What goes on in the background holds up no state, and its end is told to all who follow.
func TestBackgroundInAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toolCreated(t, noAsks)
		job := c.e.Job()
		c.say("11")
		c.want(sent("11"))
		keeps(t, c, func() {
			run := c.e.Run()
			if err := run.Keep(job, "1"); err != nil {
				t.Fatal(err)
			}
			job.Print("listening\n")
			run.Return(p.ToolOutput{Output: "session 1", Command: &p.CommandResult{Background: job.ID}})
		})
		synctest.Wait()
		c.stream("12", turn("it runs")...)
		c.listen("13")
		c.hear("task_started 1", "agent_message 1", "task_complete 1")
		job.Print("more\n")
		c.nothing()
		job.Exit(3)
		lines := map[string]bool{}
		for range 2 {
			line, _ := c.next()
			lines[line] = true
		}
		for _, want := range []string{
			`{"jsonrpc":"2.0","method":"background_event","params":{"msg":{"message":"background command 1 has ended (exit code 3): serve 1","type":"background_event"}}}`,
			`{"jsonrpc":"2.0","method":"codex/event/background_event","params":{"conversationId":"C","id":"","msg":{"message":"background command 1 has ended (exit code 3): serve 1","type":"background_event"}}}`,
		} {
			if !lines[want] {
				t.Errorf("not told: %s\ntold %v", want, lines)
			}
		}
		c.nothing()
	})
}

// The end of a background command during another call's turn is told to that call.
func TestBackgroundEndsDuringAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, noAsks)
		job := c.e.Job()
		c.begin("1")
		keeps(t, c, func() {
			run := c.e.Run()
			if err := run.Keep(job, "1"); err != nil {
				t.Fatal(err)
			}
			run.Return(p.ToolOutput{Output: "session 1", Command: &p.CommandResult{Background: job.ID}})
		})
		c.skip("1")
		c.reply("2", "")
		m := c.e.Request()
		job.Exit(0)
		synctest.Wait()
		m.Answer("two")
		c.hear("task_started 2", "background_event", "agent_message 2", "task_complete 2", "answer 2")
	})
}

// A command line of the user's own is a turn like others.
func TestTurnOfTheUsersOwnCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := direct(t)
		c.listen("2")
		c.e.Must(p.ConversationID(c.id), p.UserShell{Command: "ls"})
		run := c.e.Run()
		if err := run.Call.Host.Record(t.Context(), &p.CommandStarted{Call: run.Call.ID, Command: []string{"ls"}, Cwd: "/w"}); err != nil {
			t.Fatal(err)
		}
		run.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "a\n"}})
		c.want(told("1", `{"type":"task_started","model_context_window":null}`),
			told("1", `{"type":"exec_command_begin","call_id":"user","command":["ls"],"cwd":"/w","parsed_cmd":[{"type":"list_files","cmd":"ls"}]}`))
		if line, _ := c.next(); !strings.Contains(line, `"exec_command_end"`) || !strings.Contains(line, `"stdout":"a\n"`) {
			t.Errorf("told %s", line)
		}
		c.want(told("1", `{"type":"task_complete","last_agent_message":null}`))
	})
}
