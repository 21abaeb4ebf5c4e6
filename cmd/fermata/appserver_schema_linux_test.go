package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// resolved reads a schema.
func resolved(t *testing.T, text []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recordSession plays a session that has a bit of everything, and returns the messages and which method each answer answers.
func recordSession(t *testing.T) (log []map[string]any, methods map[float64]string) {
	t.Helper()
	s := newAppSite(t, "-c", `approval_policy="untrusted"`, "-c", `mcp_servers.none.command="/nonexistent"`)
	c := s.connect()
	methods = map[float64]string{}
	call := func(method, params string) map[string]any {
		methods[float64(c.n+1)] = method
		return c.result(method, params)
	}
	c.thread, _ = within(call("thread/start", `{"model":null}`), "thread", "id").(string)
	say := func(text string) {
		call("turn/start", fmt.Sprintf(`{"threadId":"T","input":[{"type":"text","text":%q}],"clientUserMessageId":"m"}`, text))
	}
	say("run: touch made")
	q := c.await("item/commandExecution/requestApproval")
	c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"accept"}}`, q["id"]))
	c.await("turn/completed")
	say("write new.txt: hello")
	q = c.await("item/fileChange/requestApproval")
	c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"accept"}}`, q["id"]))
	c.await("turn/completed")
	say(`call: read_file {"path":"new.txt"}`)
	c.await("turn/completed")
	say("plan: talk 2; talk 3")
	c.await("turn/completed")
	say("talk 400")
	turn, _ := within(c.await("turn/started"), "params", "turn", "id").(string)
	c.await("item/agentMessage/delta")
	call("turn/steer", fmt.Sprintf(`{"threadId":"T","expectedTurnId":%q,"input":[{"type":"text","text":"and"}]}`, turn))
	d := s.connect()
	d.thread = c.thread
	d.result("thread/resume", `{"threadId":"T"}`)
	d.await("item/agentMessage/delta")
	call("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, turn))
	call("thread/name/set", `{"threadId":"T","name":"a name"}`)
	call("thread/compact/start", `{"threadId":"T"}`)
	c.await("turn/completed")
	for method, params := range map[string]string{
		"thread/list": `{}`, "thread/loaded/list": `{}`, "thread/read": `{"threadId":"T","includeTurns":true}`, "thread/turns/list": `{"threadId":"T"}`,
		"thread/items/list": `{"threadId":"T"}`, "model/list": `{}`, "account/read": `{}`, "config/read": `{}`, "configRequirements/read": `{}`,
		"skills/list": `{}`, "permissionProfile/list": `{}`, "collaborationMode/list": `{}`, "thread/queue/list": `{"threadId":"T"}`,
		"thread/backgroundTerminals/list": `{"threadId":"T"}`, "thread/fork": `{"threadId":"T"}`, "thread/settings/update": `{"threadId":"T","model":"demo"}`,
		"command/exec": `{"command":["true"]}`, "thread/resume": `{"threadId":"T"}`, "thread/search": `{"searchTerm":"made"}`,
		"thread/unsubscribe": `{"threadId":"T"}`, "hooks/list": `{}`,
	} {
		call(method, params)
	}
	recordConfig(t, s, call)
	call("thread/archive", `{"threadId":"T"}`)
	call("thread/unarchive", `{"threadId":"T"}`)
	for _, line := range append(c.log, d.log...) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		log = append(log, m)
	}
	return log, methods
}

// recordConfig reads and writes the configuration.
func recordConfig(t *testing.T, s *appSite, call func(method, params string) map[string]any) {
	t.Helper()
	call("config/batchWrite", `{"edits":[{"keyPath":"model_verbosity","value":"low","mergeStrategy":"replace"}]}`)
	read := call("config/read", `{"includeLayers":true,"cwd":"."}`)
	for key, want := range map[string]string{"model_verbosity": "low", "approval_policy": "untrusted"} {
		if got := within(read, "config", key); got != want {
			t.Errorf("%s is %v, want %s", key, got, want)
		}
	}
	servers := call("mcpServerStatus/list", `{}`)["data"].([]any)
	if len(servers) != 1 || within(servers[0], "name") != "none" {
		t.Errorf("the MCP servers are %v", servers)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "home", "fermata", "config.toml")); err != nil || !strings.Contains(string(text), `model_verbosity = "low"`) {
		t.Errorf("config.toml is %q, %v", text, err)
	}
}

// What is recorded of a session fits our schema, and Codex's own for every message that it knows.
func TestAppServerSchema(t *testing.T) {
	t.Parallel()
	log, methods := recordSession(t)
	var ours struct {
		Methods map[string]struct{ Params, Result json.RawMessage } `json:"methods"`
	}
	out, _, _ := newPlace(t).run("app-server", "generate-json-schema")
	if err := json.Unmarshal([]byte(out), &ours); err != nil {
		t.Fatal(err)
	}
	seen, schemas := map[string]bool{}, map[string]*jsonschema.Resolved{}
	for _, m := range log {
		method, _ := m["method"].(string)
		of, value := ours.Methods[method].Params, m["params"]
		if id, ok := m["id"].(float64); ok && method == "" {
			method = methods[id]
			of, value = ours.Methods[method].Result, m["result"]
		}
		if method == "" || value == nil {
			continue // an answer to the second client
		}
		if len(of) == 0 {
			t.Errorf("%s is not in the schema", method)
			continue
		}
		seen[method] = true
		if schemas[string(of)] == nil {
			schemas[string(of)] = resolved(t, of)
		}
		if err := schemas[string(of)].Validate(value); err != nil {
			t.Errorf("%s: %v\n%v", method, err, value)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d messages were seen: %v", len(seen), seen)
	}
	codexSchema(t, log, methods)
}

// answers are the names of Codex's schemas of results.
var answers = map[string]string{
	"account/read": "GetAccount", "thread/loaded/list": "ThreadLoadedList", "thread/name/set": "ThreadSetName", "config/read": "ConfigRead",
	"config/batchWrite": "ConfigWrite", "mcpServerStatus/list": "ListMcpServerStatus",
}

func codexSchema(t *testing.T, log []map[string]any, methods map[float64]string) {
	t.Helper()
	codex, err := installCodex()
	if err != nil {
		t.Logf("Codex's own schema is not compared: %v", err)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(codex, "app-server", "generate-json-schema", "--experimental", "--out", dir)
	cmd.Env = append(os.Environ(), "CODEX_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := func(name string) *jsonschema.Resolved {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil
		}
		return resolved(t, text)
	}
	notifications, requests := read("ServerNotification.json"), read("ServerRequest.json")
	compared := map[string]bool{}
	for _, m := range log {
		schema, value, name := notifications, any(m), fmt.Sprint(m["method"])
		switch id, isNumber := m["id"].(float64); {
		case isNumber && m["method"] == nil:
			name, value = methods[id], m["result"]
			if schema = read(filepath.Join("v2", answerSchema(name)+"Response.json")); schema == nil || value == nil {
				continue
			}
		case m["id"] != nil:
			schema = requests
		}
		compared[name] = true
		if err := schema.Validate(value); err != nil {
			t.Errorf("Codex's schema of %s: %v\n%v", name, err, value)
		}
	}
	if len(compared) < 35 {
		t.Errorf("only %d were compared with Codex's schema: %v", len(compared), compared)
	}
}

// answerSchema is what Codex calls the result of a method.
func answerSchema(method string) string {
	if name := answers[method]; name != "" {
		return name
	}
	var b strings.Builder
	for _, part := range strings.Split(method, "/") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}
