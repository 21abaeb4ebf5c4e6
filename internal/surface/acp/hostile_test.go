package acp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	p "github.com/fermata-agent/fermata/protocol"
)

// Whatever a client sends that makes no sense is answered with its proper code, and the next request is answered as usual.
func TestBadInput(t *testing.T) {
	const unknown = "01a1df48-95b6-78a9-b273-5922d9b1ee09"
	inBubble(t, func(t *testing.T, x *site) {
		c := x.dial()
		c.wrong()
		for _, before := range []string{"session/new", "session/list", "session/prompt", "authenticate"} {
			params := map[string]string{"authenticate": `{"methodId":"login"}`, "session/prompt": `{"sessionId":"x","prompt":[]}`}[before]
			if params == "" {
				params = `{"cwd":"/"}`
			}
			if got := c.refused(before, params); !strings.HasPrefix(got, "-32600 not initialized") {
				t.Errorf("%s before initialize: %s", before, got)
			}
		}
		version := c.result("initialize", `{"protocolVersion":99}`)
		if version["protocolVersion"] != float64(1) {
			t.Errorf("version %v", version["protocolVersion"])
		}
		c.start()
		for _, tt := range []struct{ line, want string }{
			{`what?`, "answer <nil> error -32700"},
			{`{"jsonrpc":"2.0","id":1`, "answer <nil> error -32700"},
			{"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", "answer <nil> error -32700"},
			{`[]`, "answer <nil> error -32600"},
			{`[{"jsonrpc":"2.0","id":7,"method":"session/list"}]`, "answer <nil> error -32600"},
			{`"x"`, "answer <nil> error -32600"},
			{`{"jsonrpc":"1.0","id":7,"method":"session/list"}`, "answer 7 error -32600"},
			{`{"jsonrpc":"2.0","id":{},"method":"session/list"}`, "answer <nil> error -32600"},
			{`{"jsonrpc":"2.0","id":7}`, "answer 7 error -32600"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/fork","params":{}}`, "answer 7 error -32601"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/cancel","params":{"sessionId":"S"}}`, "answer 7 error -32601"},
			{`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}`, "answer 7 error -32600"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"mcpServers":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":7,"mcpServers":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/does/not/exist","mcpServers":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/etc/passwd","mcpServers":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/","mcpServers":[],"additionalDirectories":["/x"]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"` + unknown + `","cwd":"/","mcpServers":[]}}`, "answer 7 error -32002"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"x","cwd":"/","mcpServers":[]}}`, "answer 7 error -32002"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"S","cwd":".","mcpServers":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/resume","params":{"sessionId":"` + unknown + `","cwd":"/"}}`, "answer 7 error -32002"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/close","params":{"sessionId":"x"}}`, "answer 7 error -32002"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"text","text":"x"}]}}`, "answer 7 error -32002"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S"}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","prompt":[]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"text","text":"  "}]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"text"}]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"image","data":"?","mimeType":"image/png"}]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"image","data":"AAAA","mimeType":"image/tiff"}]}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"cwd":"."}}`, "answer 7 error -32602"},
			{`{"jsonrpc":"2.0","id":7,"method":"authenticate","params":{"methodId":"magic"}}`, "answer 7 error -32602"},
		} {
			c.send("%s", tt.line)
			if got := c.short(c.next()); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s is answered %q, want %s", tt.line, got, tt.want)
			}
		}
		for _, line := range []string{
			``, `{"jsonrpc":"2.0","method":"what/ever","params":{}}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`, `{"jsonrpc":"2.0","method":"session/cancel"}`,
			`{"jsonrpc":"2.0","method":"session/cancel","params":[]}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`,
		} {
			c.send("%s", line)
			c.nothing()
		}
		c.say("hi")
		x.e.Request().Answer("all is well")
		c.want("agent_message 1.1.0 all is well")
		c.until("answer")
	})
}

// Without a key the client is told to log in, and how.
func TestNoKey(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		x.noKey = true
		for offers, want := range map[string]string{
			`{}`:                         `[map[description:Run fermata login in a terminal, or set the variable of your provider's key id:login name:Log in]]`,
			`{"auth":{"terminal":true}}`: `[map[args:[login] description:Run fermata login in a terminal, or set the variable of your provider's key id:login name:Log in type:terminal]]`,
		} {
			c := x.dial()
			got := c.result("initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":%s}`, offers))
			if methods := fmt.Sprint(got["authMethods"]); methods != want {
				t.Errorf("methods %s", methods)
			}
			for _, r := range [][2]string{{"session/new", `{"cwd":"/","mcpServers":[]}`}, {"authenticate", `{"methodId":"login"}`}} {
				if got := c.refused(r[0], r[1]); got != "-32000 provider test needs a key: set TEST_KEY, or run fermata login test" {
					t.Errorf("%s: %s", r[0], got)
				}
			}
		}
		x.noKey = false
		c := x.connect()
		c.result("authenticate", `{"methodId":"login"}`)
	})
}

// A client that does not read holds up nothing: it can cancel, and gets what it missed when it reads again.
func TestClientThatDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.stalled.Store(true)
		c.say("hi")
		r := x.e.Request()
		for range 18 {
			r.Delta(strings.Repeat("x", 100_000))
			synctest.Wait()
		}
		c.cancel()
		r.Stopped()
		synctest.Wait()
		snap, err := x.e.Resume(t.Context(), p.ConversationID(c.id))
		if err != nil || snap.Active {
			t.Errorf("snapshot %+v, %v", snap, err)
		}
		close(c.resume)
		got := c.until("answer 3 cancelled")
		if text := strings.Count(strings.Join(got, ""), "x"); text != 18*100_000 {
			t.Errorf("it was sent %d bytes of the text", text)
		}
	})
}

// The text, the links and the contents of a prompt reach the model, and are shown again as they were written.
func TestContents(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.ask("session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"fix "},{"type":"resource_link","uri":"file:///w/a.go","name":"a.go"},{"type":"text","text":" with"},{"type":"resource","resource":{"uri":"file:///w/b.go","text":"package b"}},{"type":"text","text":"one"},{"type":"text","text":"two"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`)
		r := x.e.Request()
		content := r.Prompt.Items[1].Content
		written := "fix [@a.go](file:///w/a.go) with[@b.go](file:///w/b.go)one\ntwo"
		if content[0].Text != written || !strings.Contains(content[1].Text, "package b") || len(content) != 3 {
			t.Errorf("the model gets %+v", content)
		}
		r.Answer("ok")
		c.until("answer 3")
		d := x.connect()
		d.open("session/load", c)
		d.want("user_message u1.0.0 "+written, "user_message u1.0.0 image", "agent_message 1.1.0 ok", "answer 2 ok")
	})
}
