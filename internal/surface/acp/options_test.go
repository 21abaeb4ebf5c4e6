package acp

import (
	"fmt"
	"strings"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// chosen are the options of an answer or update: what is chosen, of what.
func chosen(options any) (lines []string) {
	list, _ := options.([]any)
	for _, o := range list {
		line := fmt.Sprint(at(o, "id"), " ", at(o, "currentValue"), " of")
		for _, c := range at(o, "options").([]any) {
			line += fmt.Sprint(" ", at(c, "value"))
		}
		lines = append(lines, line)
	}
	return lines
}

// Modes and options are offered with a session, in step, and change the settings of its turns. What is not allowed here is not offered.
func TestModesAndOptions(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		r := c.result("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, x.dir))
		c.id = r["sessionId"].(string)
		c.until("available_commands_update")
		same(t, []string{
			"mode auto of ask auto plan read-only", "model puppet of puppet other", "effort default of default low high", "sandbox workspace-write of read-only workspace-write",
		}, chosen(r["configOptions"]))
		if got := at(r, "modes", "currentModeId"); got != "auto" {
			t.Errorf("the mode is %v", got)
		}
		c.result("session/set_mode", `{"sessionId":"S","modeId":"ask"}`)
		c.want("mode ask", "config_option_update")
		got := c.result("session/set_config_option", `{"sessionId":"S","configId":"mode","value":"plan"}`)
		if lines := chosen(got["configOptions"]); lines[0] != "mode plan of ask auto plan read-only" {
			t.Errorf("answered %q", lines)
		}
		c.want("mode plan", "config_option_update")
		c.result("session/set_mode", `{"sessionId":"S","modeId":"read-only"}`)
		c.want("mode read-only", "config_option_update")
		c.result("session/set_config_option", `{"sessionId":"S","configId":"effort","value":"high"}`)
		c.want("mode read-only", "config_option_update")
		c.result("session/set_config_option", `{"sessionId":"S","configId":"sandbox","value":"workspace-write"}`)
		c.want("mode auto", "config_option_update")
		c.wrong() // the method is one of an earlier version
		c.result("session/set_model", `{"sessionId":"S","modelId":"other"}`)
		c.want("mode auto", "config_option_update")
		snap, err := x.e.Resume(t.Context(), p.ConversationID(c.id))
		if s := snap.Settings; err != nil || s.Plan || s.Effort != "high" || s.Model != "other" || s.Sandbox.Mode != p.SandboxWorkspaceWrite {
			t.Errorf("settings %+v, %v", s, err)
		}
		for _, tt := range []struct{ method, params, want string }{
			{"session/set_mode", `{"sessionId":"S","modeId":"yolo"}`, `-32602 mode: there is no "yolo"`},
			{"session/set_mode", `{"sessionId":"x","modeId":"ask"}`, `-32002 there is no session x`},
			{"session/set_config_option", `{"sessionId":"S","configId":"color","value":"red"}`, `-32602 there is no option "color"`},
			{"session/set_config_option", `{"sessionId":"S","configId":"mode","type":"boolean","value":true}`, `-32602 value: true is not`},
			{"session/set_config_option", `{"sessionId":"S","configId":"sandbox","value":"none"}`, `-32602 sandbox: there is no "none"`},
			{"session/set_config_option", `{"sessionId":"S","configId":"model","value":"bad"}`, `-32602 there is no model bad`},
		} {
			if got := c.refused(tt.method, tt.params); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s %s is answered %s", tt.method, tt.params, got)
			}
		}
		c.nothing()
	})
}

// Settings that are none of the modes are one, and can be chosen again.
func TestConfiguredMode(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		x.e.Must(p.ConversationID(c.id), p.Configure{Overrides: p.Overrides{Approval: new(p.ApprovalNever), Sandbox: &p.SandboxPolicy{Mode: p.SandboxWorkspaceWrite}}})
		c.want("mode configured", "config_option_update")
		d := x.connect()
		d.open("session/load", c)
		if got := at(d.response(2), "result", "modes", "currentModeId"); got != "configured" {
			t.Errorf("the mode is %v", got)
		}
		d.result("session/set_mode", `{"sessionId":"S","modeId":"ask"}`)
		d.result("session/set_mode", `{"sessionId":"S","modeId":"configured"}`)
		snap, err := x.e.Resume(t.Context(), p.ConversationID(c.id))
		if s := snap.Settings; err != nil || s.Approval != p.ApprovalNever || s.Sandbox.Mode != p.SandboxWorkspaceWrite {
			t.Errorf("settings %+v, %v", s, err)
		}
	})
}

// Commands are carried out, answered, or sent as what they stand for; what is none of them is a message.
func TestCommands(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.result("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, x.dir))
		c.until("available_commands_update")
		var names []string
		for _, cmd := range at(c.last, "params", "update", "availableCommands").([]any) {
			names = append(names, fmt.Sprint(at(cmd, "name")))
		}
		same(t, strings.Fields("review init compact undo-turn ps kill try-now rename status greet"), names)
		c.start()
		for text, want := range map[string]string{
			"/ps": "No background command is running.", "/undo-turn": "What turn 1 changed in files was undone.",
			"/rename a title": "The conversation is called a title.", "/status": "Conversation: S",
		} {
			id := c.say(text)
			c.until("agent_message <nil> " + want)
			c.until(fmt.Sprintf("answer %d end_turn", id))
		}
		for text, want := range map[string]string{"/kill x": "-32602 /kill: the number", "/rename": "-32602 /rename: a title", "/undo-turn x": "-32602 /undo-turn: the number"} {
			if got := c.refused("session/prompt", fmt.Sprintf(`{"sessionId":"S","prompt":[{"type":"text","text":%q}]}`, text)); !strings.HasPrefix(got, want) {
				t.Errorf("%s is answered %s", text, got)
			}
		}
		for text, want := range map[string]string{
			"/init": "Write a file AGENTS.md", "/review main": "those that main names", "/greet Ada": "Say hello to Ada.", "/unknown thing": "/unknown thing", "/": "/",
		} {
			id := c.say(text)
			r := x.e.Request()
			content := r.Prompt.Items[len(r.Prompt.Items)-1].Content
			if got := p.PlainText(content); !strings.Contains(got, want) {
				t.Errorf("%s is sent as %s", text, got)
			}
			r.Answer("ok")
			c.until(fmt.Sprintf("answer %d end_turn", id))
		}
		id := c.say("/compact")
		x.e.Request().Answer("the summary, which is for the model")
		got := c.until(fmt.Sprintf("answer %d end_turn", id))
		if text := strings.Join(got, "\n"); strings.Contains(text, "for the model,") || strings.Contains(text, "which is") {
			t.Errorf("the summary is shown: %s", text)
		}
		if got := c.refused("session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"/try-now"}]}`); !strings.Contains(got, "-32") {
			t.Errorf("/try-now is answered %s", got)
		}
	})
}

// A client that knows compactions and notices gets them as such.
func TestCompactionAndNotices(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect(everything)
		c.start()
		c.say("hi")
		x.e.Request().Answer("ok")
		c.until("answer 3")
		c.say("/compact")
		x.e.Request().Answer("summary")
		got := c.until("answer 4 end_turn")
		if text := strings.Join(got, "\n"); strings.Count(text, "compaction_update") != 2 || !strings.Contains(text, "notice info") {
			t.Errorf("got %s", text)
		}
	})
}
