package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/responses"
	"github.com/fermata-agent/fermata/protocol"
)

// A talk is a conversation with the demo model, with tools that answer from a table.
type talker struct {
	t      *testing.T
	client model.Client
	prompt model.Prompt
	outs   map[string]string // command or tool name to output
	calls  []string          // what was called
}

func newTalk(t *testing.T, tools ...string) *talker {
	c := &talker{t: t, client: New(), outs: map[string]string{}}
	c.prompt.Model = Model
	for _, name := range tools {
		spec := model.ToolSpec{Name: name, Kind: protocol.CallFunction}
		if name == "apply_patch!" {
			spec = model.ToolSpec{Name: "apply_patch", Kind: protocol.CallCustom}
		}
		c.prompt.Tools = append(c.prompt.Tools, spec)
	}
	c.user("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>")
	return c
}

func (c *talker) user(text string) {
	c.prompt.Items = append(c.prompt.Items, &protocol.PromptItem{Kind: protocol.PromptUser, Content: protocol.Text(text)})
}

// say sends a message and runs the turn to its end. It returns all that was said.
func (c *talker) say(text string) []string {
	c.t.Helper()
	c.user(text)
	var said []string
	for range 20 {
		rec := &modeltest.Recorder{}
		end, err := c.client.Stream(c.t.Context(), c.prompt, rec)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(rec.Broken) > 0 || end.Usage == nil || end.Usage.Total != end.Usage.Input+end.Usage.Output || end.Usage.Output == 0 {
			c.t.Errorf("broken %v, usage %+v", rec.Broken, end.Usage)
		}
		items := modeltest.Answer(rec.Finished())
		calls := 0
		for _, it := range items {
			switch it.Kind {
			case protocol.PromptAssistant:
				if !strings.HasPrefix(it.Text, Label) {
					c.t.Errorf("not labelled: %q", it.Text)
				}
				said = append(said, strings.TrimPrefix(it.Text, Label))
			case protocol.PromptCall:
				calls++
				c.calls = append(c.calls, it.Name+" "+it.Arguments)
			case protocol.PromptOutput:
				it.Text = c.output(c.calls[len(c.calls)-1])
			}
		}
		c.prompt.Items = append(c.prompt.Items, items...)
		if calls == 0 {
			return said
		}
	}
	c.t.Fatal("the turn does not end")
	return nil
}

func (c *talker) output(call string) string {
	for part, out := range c.outs {
		if strings.Contains(call, part) {
			return out
		}
	}
	return `{"output":"","metadata":{"exit_code":0,"duration_seconds":0.1}}`
}

func (c *talker) wantCalls(want ...string) {
	c.t.Helper()
	if d := cmp.Diff(want, c.calls); d != "" {
		c.t.Errorf("calls (-want +got):\n%s", d)
	}
}

func (c *talker) wantSaid(said []string, parts ...string) {
	c.t.Helper()
	all := strings.Join(said, "\n---\n")
	for _, p := range parts {
		if !strings.Contains(all, p) {
			c.t.Errorf("it did not say %q but:\n%s", p, all)
		}
	}
}

func TestRun(t *testing.T) {
	c := newTalk(t, "shell")
	c.outs["echo hi"] = `{"output":"hi\n","metadata":{"exit_code":0,"duration_seconds":0.1}}`
	c.outs["false"] = `{"output":"","metadata":{"exit_code":1,"duration_seconds":0.1}}`
	c.wantSaid(c.say("run: echo hi"), "It printed:\nhi")
	c.wantSaid(c.say("Run:  false"), "It printed:\n(nothing)\n(exit code 1)")
	c.wantCalls(`shell {"command":["bash","-lc","echo hi"]}`, `shell {"command":["bash","-lc","false"]}`)
}

func TestCallIDsAreUnique(t *testing.T) {
	c := newTalk(t, "shell")
	c.say("run: a")
	c.say("run: b")
	seen := map[string]bool{}
	for _, it := range c.prompt.Items {
		if it.Kind == protocol.PromptCall && seen[it.WireID] {
			t.Errorf("%s is used twice", it.WireID)
		}
		seen[it.WireID] = it.Kind == protocol.PromptCall
	}
}

func TestWrite(t *testing.T) {
	tests := map[string]struct {
		tools []string
		want  string
	}{
		"patch as custom tool": {[]string{"shell", "apply_patch!"}, "apply_patch *** Begin Patch\n*** Add File: a/b.txt\n+it's\n+two\n*** End Patch\n"},
		"patch as function":    {[]string{"shell", "apply_patch"}, `apply_patch {"input":"*** Begin Patch\n*** Add File: a/b.txt\n+it's\n+two\n*** End Patch\n"}`},
		"shell":                {[]string{"shell"}, `shell {"command":["bash","-lc","mkdir -p 'a' && printf '%s\\n' 'it'\\''s\ntwo' > 'a/b.txt'"]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTalk(t, tt.tools...)
			c.outs["b.txt"] = "Success"
			said := c.say("write a/b.txt: it's\ntwo")
			c.wantCalls(tt.want)
			c.wantSaid(said, "Success")
		})
	}
	t.Run("here", func(t *testing.T) {
		c := newTalk(t, "shell")
		c.say("write b.txt: x")
		c.wantCalls(`shell {"command":["bash","-lc","printf '%s\\n' 'x' > 'b.txt'"]}`)
	})
}

func TestPlan(t *testing.T) {
	c := newTalk(t, "shell", "update_plan")
	c.outs["echo 1"] = `{"output":"1\n","metadata":{"exit_code":0}}`
	c.outs["update_plan"] = "Plan updated"
	said := c.say("plan: look; run: echo 1; write f: x;")
	plan := func(a, b, d string) string {
		return fmt.Sprintf(`update_plan {"plan":[{"status":%q,"step":"look"},{"status":%q,"step":"run: echo 1"},{"status":%q,"step":"write f: x"}]}`, a, b, d)
	}
	c.wantCalls(
		plan("in_progress", "pending", "pending"),
		plan("completed", "in_progress", "pending"),
		`shell {"command":["bash","-lc","echo 1"]}`,
		plan("completed", "completed", "in_progress"),
		`shell {"command":["bash","-lc","printf '%s\\n' 'x' > 'f'"]}`,
		plan("completed", "completed", "completed"),
	)
	c.wantSaid(said, "A plan with 3 steps.", "Step 1 of 3: look", "Step 2 of 3: run: echo 1", "It printed:\n1", "Step 3 of 3", "The plan is carried out.")
}

func TestPlanWithoutTheTool(t *testing.T) {
	c := newTalk(t, "shell")
	c.outs["echo 1"] = "1"
	said := c.say("plan: look; run: echo 1; done")
	c.wantCalls(`shell {"command":["bash","-lc","echo 1"]}`)
	c.wantSaid(said, "Step 1 of 3: look", "Step 2 of 3", "It printed:\n1", "Step 3 of 3: done", "carried out")
	c.wantSaid(c.say("plan: ;"), "A plan needs steps")
}

func TestNoTools(t *testing.T) {
	c := newTalk(t)
	c.wantSaid(c.say("run: ls"), noTool)
	c.wantSaid(c.say("plan: run: ls; b"), noTool, "Step 2 of 2: b")
	c.wantSaid(c.say("summarise"), "2 messages of yours", "- run: ls\n- plan: run: ls; b")
	c.wantCalls()
	c.wantSaid(newTalk(t).say("hello"), "no tool is offered")
}

func TestAnythingElseLooksAround(t *testing.T) {
	c := newTalk(t, "shell")
	c.outs[`"ls"`] = `{"output":"a.txt\nb.txt\n","metadata":{"exit_code":0}}`
	said := c.say("make me a sandwich")
	c.wantCalls(`shell {"command":["bash","-lc","ls"]}`)
	c.wantSaid(said, "not a real model", "a.txt\nb.txt", Help)
}

func TestTalkTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := newTalk(t)
		said := c.say("talk 20")
		c.wantSaid(said, "word1 word2 ", " word20")
		if took := time.Since(begin); took < 20*perWord || took > 22*perWord {
			t.Errorf("it took %v", took)
		}
	})
}

func TestTalkIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*perWord+perWord/2)
		defer cancel()
		c := newTalk(t)
		c.user("talk 1000")
		rec := &modeltest.Recorder{}
		_, err := c.client.Stream(ctx, c.prompt, rec)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if got, want := rec.Items[0].Text(), "[demo] word1 word2 word3 word4 word5 word6 word7 word8 word9 "; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
		if len(rec.Finished()) != 0 {
			t.Errorf("finished items: %v", rec.Summary())
		}
	})
}

func TestWaitIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := newTalk(t)
		c.user("wait 2.5")
		rec := &modeltest.Recorder{}
		var first time.Duration
		rec.OnDelta = func(string) {
			if first == 0 {
				first = time.Since(begin)
			}
		}
		if _, err := c.client.Stream(t.Context(), c.prompt, rec); err != nil {
			t.Fatal(err)
		}
		if first != 2500*time.Millisecond {
			t.Errorf("first word after %v", first)
		}
		c.wantSaid(rec.Summary(), "I waited for 2.5 s.")
	})
}

func TestWhatHappened(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		c := newTalk(t, "shell")
		c.wantSaid(c.say("what happened?"), "Nothing has happened yet")
	})
	t.Run("a turn that ended", func(t *testing.T) {
		c := newTalk(t, "shell")
		c.outs["date"] = `{"output":"Monday\n","metadata":{"exit_code":0}}`
		c.say("run: date")
		c.wantSaid(c.say("What happened"), "Nothing was interrupted", "You had asked: run: date", "I called: `date`. Its output:\n  Monday", "I said:\n  [demo] It printed:\n  Monday")
	})
	t.Run("a command that was cut", func(t *testing.T) {
		c := newTalk(t, "shell")
		c.user("run: sleep 600")
		c.prompt.Items = append(c.prompt.Items,
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "1", CallKind: protocol.CallFunction, Name: "shell", Arguments: `{"command":["bash","-lc","echo one"]}`},
			&protocol.PromptItem{Kind: protocol.PromptOutput, WireID: "1", CallKind: protocol.CallFunction, Text: "one"},
			&protocol.PromptItem{Kind: protocol.PromptCall, WireID: "2", CallKind: protocol.CallFunction, Name: "shell", Arguments: `{"command":["sleep","600"]}`},
			&protocol.PromptItem{Kind: protocol.PromptOutput, WireID: "2", CallKind: protocol.CallFunction, Text: "aborted after 3.2 s: the user stopped the turn while this ran. Output until then:\n1\n2"},
		)
		c.user("<turn_aborted>\nThe user stopped your previous turn on purpose after 4.0 s.\n</turn_aborted>")
		c.wantSaid(c.say("what happened?"), "You had asked: run: sleep 600", "The turn was interrupted after 4.0 s", "stopped your previous turn on purpose",
			"Done before that: `echo one`", "Interrupted: `sleep 600`, after 3.2 s. Its output:\n  aborted after 3.2 s", "  1\n  2")
	})
	t.Run("text that was cut", func(t *testing.T) {
		c := newTalk(t, "shell")
		c.user("talk 50")
		c.prompt.Items = append(c.prompt.Items, &protocol.PromptItem{Kind: protocol.PromptAssistant, Text: "[demo] word1 word2"})
		c.user("<turn_aborted>The program crashed.</turn_aborted>")
		c.wantSaid(c.say("what happened?"), "The turn was interrupted. The notice said: The program crashed.", "No command was interrupted", "My last message was:\n  [demo] word1 word2")
	})
}

func TestItJudgesItsInput(t *testing.T) {
	c := newTalk(t, "shell")
	c.prompt.Items = append(c.prompt.Items, &protocol.PromptItem{Kind: protocol.PromptCall, WireID: "call_7", CallKind: protocol.CallFunction, Name: "shell", Arguments: "{}"})
	c.user("hi")
	_, err := c.client.Stream(t.Context(), c.prompt, &modeltest.Recorder{})
	var e *protocol.Error
	if !errors.As(err, &e) || e.Kind != protocol.ErrorHistory || e.Call.WireID != "call_7" {
		t.Errorf("error is %#v", err)
	}
}

func TestTheSameQuestionGetsTheSameAnswer(t *testing.T) {
	ask := func() string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(`{"model":"demo","stream":true,"input":"talk 0"}`))
		Handler().ServeHTTP(w, r)
		return w.Body.String()
	}
	first := ask()
	if !strings.Contains(first, "response.completed") {
		t.Fatalf("answer: %s", first)
	}
	if again := ask(); again != first {
		t.Errorf("answers differ:\n%s\n%s", first, again)
	}
}

func TestOverHTTP(t *testing.T) {
	srv := httptest.NewServer(Handler())
	defer srv.Close()
	rec := &modeltest.Recorder{}
	c := responses.New(responses.Options{BaseURL: srv.URL + "/v1"})
	if _, err := c.Stream(t.Context(), modeltest.Hello(), rec); err != nil || len(rec.Finished()) != 2 {
		t.Errorf("error %v, items %v", err, rec.Summary())
	}

	get := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(bytes.TrimSpace(b))
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/models", "", 200, `"id":"demo"`},
		{"POST", "/v1/responses", "nonsense", 400, "not a request"},
		{"POST", "/v1/responses", `{"input":5}`, 400, "request input"},
		{"POST", "/v1/responses", `{"input":[{"type":"function_call_output","call_id":"x","output":""}]}`, 400, "No tool call found for function call output with call_id x."},
		{"POST", "/v1/chat/completions", "{}", 404, "does not serve POST /v1/chat/completions"},
		{"POST", "/v1/responses", `{"model":"demo","input":"talk 2"}`, 200, `"text":"[demo] word1 word2"`},
	} {
		status, body := get(tt.method, tt.path, tt.body)
		if status != tt.status || !strings.Contains(body, tt.want) || !json.Valid([]byte(body)) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, status, body)
		}
	}
}

func TestPrinted(t *testing.T) {
	long := strings.Repeat("é", quoted)
	for in, want := range map[string]string{
		"":                 "(nothing)",
		"plain\n":          "plain",
		`{"other":1}`:      `{"other":1}`,
		`{"output":"a\n"}`: "a",
		long:               "…" + strings.Repeat("é", quoted/2),
		`{"output":"","metadata":{"exit_code":-1}}`: "(nothing)\n(exit code -1)",
	} {
		if got := printed(in); got != want {
			t.Errorf("printed(%.40q) = %.80q, want %.80q", in, got, want)
		}
	}
}
