package exec

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// What an MCP server asks is declined: there is no client to answer.
func TestQuestionOfAServerIsDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused string
		r := start(t, func(o *Options) {
			o.Refused = func(r Refusal) { refused += r.What + ": " + r.Why + " " + string(r.Reason) }
		})
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		run := r.e.Run()
		resolved, err := run.Call.Host.(tool.Elicitor).Elicit(t.Context(), p.ElicitationRequested{Server: "s", Message: "who?"})
		if err != nil || resolved.Action != p.ElicitationDecline {
			t.Errorf("%+v, %v", resolved, err)
		}
		run.Finish("nobody")
		r.e.Request().Answer("done")
		<-r.done
		if refused != "work: declined, since there is no interactive client: who? question" {
			t.Errorf("said %q", refused)
		}
	})
}

// At a terminal the person is asked.
func TestAPersonAnswersAServer(t *testing.T) {
	form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}`)
	for _, c := range []struct {
		q     p.ElicitationRequested
		typed string
		want  string
	}{
		{p.ElicitationRequested{Server: "s", Message: "who?", Schema: form}, "age=x\nname=me age=3\n", `accept {"age":3,"name":"me"}`},
		{p.ElicitationRequested{Server: "s", Message: "who?", Schema: form}, "n\n", "decline "},
		{p.ElicitationRequested{Server: "s", Message: "who?", Schema: form}, "s\n", "cancel "},
		{p.ElicitationRequested{Server: "s", Message: "sure?"}, "what\ny\n", "accept "},
		{p.ElicitationRequested{Server: "s", Message: "go there", URL: "https://example.com"}, "yes\n", "accept "},
		{p.ElicitationRequested{Server: "s", Message: "who?"}, "", "decline "}, // the terminal is closed
	} {
		synctest.Test(t, func(t *testing.T) {
			in, typed := io.Pipe()
			r := start(t, func(o *Options) { o.ErrTerminal, o.Plain, o.Prompt = true, true, &Prompt{In: in} })
			m := r.e.Request()
			m.Call("c", "work", "{}")
			m.End()
			run := r.e.Run()
			got := make(chan string, 1)
			go func() {
				resolved, err := run.Call.Host.(tool.Elicitor).Elicit(t.Context(), c.q)
				if err != nil {
					t.Error(err)
				}
				got <- string(resolved.Action) + " " + string(resolved.Content)
			}()
			synctest.Wait()
			if text := r.err.String(); !strings.Contains(text, "The MCP server s asks: "+c.q.Message) || !strings.HasSuffix(text, "your answer? ") {
				t.Errorf("the question:\n%s", text)
			}
			if _, err := io.WriteString(typed, c.typed); err != nil {
				t.Fatal(err)
			}
			if c.typed == "" {
				typed.Close()
			}
			if answer := <-got; answer != c.want {
				t.Errorf("%q: %s, want %s", c.typed, answer, c.want)
			}
			run.Finish("ok")
			r.e.Request().Answer("done")
			<-r.done
			typed.Close()
		})
	}
}
