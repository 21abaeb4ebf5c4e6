package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/emit"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	"github.com/fermata-agent/fermata/protocol"
)

const (
	maxTalk = 100_000
	maxWait = 24 * time.Hour
)

const noTool = "I cannot do that: no tool for it is offered to me."

// A view is a history with the last message of the user picked out.
type view struct {
	request
	message string           // what the user said last
	before  []wirecheck.Item // what came before that message
	calls   []wirecheck.Item // what was called since
	outputs []wirecheck.Item // and what came of it
}

// fromProgram reports whether a user message was written by the program around us.
func fromProgram(text string) bool {
	for _, tag := range []string{"<environment_context>", "<user_instructions>", "<turn_aborted>"} {
		if strings.HasPrefix(strings.TrimSpace(text), tag) {
			return true
		}
	}
	return false
}

// lastMessage is the place of the last message of the user, or -1.
func lastMessage(items []wirecheck.Item) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind == wirecheck.User && !fromProgram(items[i].Text) {
			return i
		}
	}
	return -1
}

func look(req request) view {
	v := view{request: req}
	at := lastMessage(req.items)
	if at >= 0 {
		text, _, _ := strings.Cut(req.items[at].Text, "<work_tree>") // the program adds it
		v.message, v.before = strings.TrimSpace(text), req.items[:at]
	}
	for _, it := range req.items[at+1:] {
		switch it.Kind {
		case wirecheck.Call:
			v.calls = append(v.calls, it)
		case wirecheck.Output:
			v.outputs = append(v.outputs, it)
		}
	}
	return v
}

// output is what came of the n-th call since the last message.
func (v view) output(n int) string {
	for _, out := range v.outputs {
		if n < len(v.calls) && out.ID == v.calls[n].ID {
			return out.Text
		}
	}
	return ""
}

var (
	talk     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^talk (\d+)$`) })
	wait     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^wait (\d+(?:\.\d+)?)\s*s?$`) })
	happened = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^what(?:'s| has| just)? happened\s*\??$`) })
)

// decide is the whole mind of the demo model. What it does for a message is a
// list of responses, all but the last with a call; how many calls were made says
// which of them is next.
func decide(req request) turnout {
	v := look(req)
	if m := talk().FindStringSubmatch(v.message); m != nil {
		return turnout{pace: perWord, text: talking(m[1])}
	}
	if m := wait().FindStringSubmatch(v.message); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		d := min(time.Duration(min(seconds, maxWait.Seconds())*float64(time.Second)), maxWait)
		return turnout{wait: d, text: fmt.Sprintf("I waited for %s s.", m[1])}
	}
	if happened().MatchString(v.message) {
		return turnout{text: v.story()}
	}

	list := v.responses()
	next := list[min(len(v.calls), len(list)-1)]
	if next.call != nil {
		next.call.ID = fmt.Sprintf("call_demo_%d", callsIn(req.items)+1)
	}
	return next
}

func talking(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n > maxTalk {
		n = maxTalk
	}
	list := make([]string, n)
	for i := range list {
		list[i] = "word" + strconv.Itoa(i+1)
	}
	if n == 0 {
		return "No words, as you wish."
	}
	return strings.Join(list, " ")
}

func callsIn(items []wirecheck.Item) int {
	n := 0
	for _, it := range items {
		if it.Kind == wirecheck.Call {
			n++
		}
	}
	return n
}

// responses is what is done for the last message.
func (v view) responses() []turnout {
	if rest, ok := cutWord(v.message, "plan:"); ok {
		return v.plan(rest)
	}
	if call, ok := v.step(v.message); ok {
		if call == nil {
			return []turnout{{text: noTool}}
		}
		return []turnout{{text: "I do: " + oneLine(v.message), call: call}, {text: v.result(v.message, 0)}}
	}
	look := v.shell("ls")
	if look == nil {
		return []turnout{{text: v.summary()}}
	}
	return []turnout{
		{text: "I am a demo, not a real model. I look around first.", call: look},
		{text: "In this directory there is:\n" + printed(v.output(0)) + "\n\nI understand:\n" + Help},
	}
}

func cutWord(s, word string) (string, bool) {
	if len(s) < len(word) || !strings.EqualFold(s[:len(word)], word) {
		return "", false
	}
	return strings.TrimSpace(s[len(word):]), true
}

var (
	writes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)^write ([^:\n]+): ?(.*)$`) })
	types  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)^type (\d+): ?(.*)$`) })
)

// step reads what Help says can be done. It reports false if s is nothing of it;
// the call is nil if no tool for it is offered.
func (v view) step(s string) (*emit.Call, bool) {
	if command, ok := cutWord(s, "run:"); ok {
		return v.shell(command), true
	}
	if command, ok := cutWord(s, "start:"); ok {
		return v.call("exec_command", emit.Object{"cmd": command, "yield_time_ms": 250, "tty": true}), true
	}
	if m := types().FindStringSubmatch(s); m != nil {
		id, _ := strconv.Atoi(m[1])
		chars := m[2]
		if chars != "" {
			chars += "\n"
		}
		return v.call("write_stdin", emit.Object{"session_id": id, "chars": chars, "yield_time_ms": 500}), true
	}
	if file, ok := cutWord(s, "view:"); ok {
		return v.call("view_image", emit.Object{"path": file}), true
	}
	if rest, ok := cutWord(s, "call:"); ok {
		name, arguments, _ := strings.Cut(rest, " ")
		if v.tool(name) == "" {
			return nil, true
		}
		return &emit.Call{Name: name, Arguments: cmp.Or(strings.TrimSpace(arguments), "{}")}, true
	}
	if m := writes().FindStringSubmatch(s); m != nil {
		return v.write(strings.TrimSpace(m[1]), m[2]), true
	}
	return nil, false
}

// call calls a tool, if it is offered.
func (v view) call(name string, arguments emit.Object) *emit.Call {
	if v.tool(name) == "" {
		return nil
	}
	return &emit.Call{Name: name, Arguments: emit.Marshal(arguments)}
}

func (v view) shell(command string) *emit.Call {
	if v.tool("exec_command") != "" {
		return v.call("exec_command", emit.Object{"cmd": command, "yield_time_ms": 120_000})
	}
	return v.call("shell", emit.Object{"command": []string{"bash", "-lc", command}})
}

func (v view) write(file, text string) *emit.Call {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	patch := "*** Begin Patch\n*** Add File: " + file + "\n+" + strings.Join(lines, "\n+") + "\n*** End Patch\n"
	switch v.tool("apply_patch") {
	case "":
		if v.tool("write") != "" {
			return v.call("write", emit.Object{"path": file, "content": strings.Join(lines, "\n") + "\n"})
		}
	case "custom":
		return &emit.Call{Kind: protocol.CallCustom, Name: "apply_patch", Arguments: patch}
	case "function":
		return &emit.Call{Name: "apply_patch", Arguments: emit.Marshal(emit.Object{"input": patch})}
	}
	command := fmt.Sprintf("printf '%%s\\n' %s > %s", quote(strings.Join(lines, "\n")), quote(file))
	if dir := path.Dir(file); dir != "." {
		command = "mkdir -p " + quote(dir) + " && " + command
	}
	return v.shell(command)
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// plan is the responses for "plan: a; b; c".
func (v view) plan(text string) []turnout {
	var steps []string
	for _, s := range strings.Split(text, ";") {
		if s = strings.TrimSpace(s); s != "" {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return []turnout{{text: "A plan needs steps: plan: a; b; c"}}
	}

	var list []turnout
	say := "A plan with " + humanize.Count(len(steps), "step") + "."
	add := func(call *emit.Call) {
		if call != nil {
			list = append(list, turnout{text: say, call: call})
			say = ""
		}
	}
	add(v.updatePlan(steps, 0))
	for i, s := range steps {
		say = join(say, fmt.Sprintf("Step %d of %d: %s", i+1, len(steps), oneLine(s)))
		switch call, ok := v.step(s); {
		case ok && call != nil:
			add(call)
			say = v.result(s, len(list)-1)
		case ok:
			say = join(say, noTool)
		}
		add(v.updatePlan(steps, i+1))
	}
	return append(list, turnout{text: join(say, "The plan is carried out.")})
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// updatePlan says that the first done steps are done, if that can be said.
func (v view) updatePlan(steps []string, done int) *emit.Call {
	if v.tool("update_plan") == "" {
		return nil
	}
	list := make([]emit.Object, len(steps))
	for i, s := range steps {
		status := "pending"
		switch {
		case i < done:
			status = "completed"
		case i == done:
			status = "in_progress"
		}
		list[i] = emit.Object{"step": s, "status": status}
	}
	return &emit.Call{Name: "update_plan", Arguments: emit.Marshal(emit.Object{"plan": list})}
}

// result tells what came of the n-th call, which was for a step.
func (v view) result(step string, n int) string {
	out := v.output(n)
	if _, ok := cutWord(step, "run:"); ok {
		return "It printed:\n" + printed(out)
	}
	return "The tool says: " + strings.TrimSpace(printed(out))
}

// report is what exec_command says before the output of a command that ended.
var report = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^Wall time: [0-9.]+ seconds\nProcess exited with code (-?\d+)\nOutput:\n`)
})

// printed is the output of a command in what a tool returned, with its exit code
// if that is not 0.
func printed(output string) string {
	var result struct {
		Output   *string `json:"output"`
		Metadata struct {
			ExitCode int `json:"exit_code"`
		} `json:"metadata"`
	}
	text, code := output, 0
	if json.Unmarshal([]byte(output), &result) == nil && result.Output != nil {
		text, code = *result.Output, result.Metadata.ExitCode
	}
	if m := report().FindStringSubmatch(text); m != nil {
		code, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	text = tail(strings.TrimRight(text, "\n"))
	if text == "" {
		text = "(nothing)"
	}
	if code != 0 {
		text += fmt.Sprintf("\n(exit code %d)", code)
	}
	return text
}

const quoted = 4000 // bytes of an output that are repeated

func tail(s string) string {
	if len(s) <= quoted {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-quoted:], "")
}

// oneLine is a text as a title.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 120 {
		s = string(r[:120]) + "…"
	}
	return s
}
