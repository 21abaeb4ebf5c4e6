package appserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A configured machine has a configuration, MCP servers and limits.
type configured struct {
	fakeLocal
	saved *[]app.ConfigEdit
}

func (configured) ViewConfig(cwd string) (app.ConfigView, error) {
	set := func(value any, from config.Source, path ...string) app.ConfigSetting {
		return app.ConfigSetting{Key: strings.Join(path, "."), Path: path, Value: value, Source: from}
	}
	file := config.Source{Kind: config.FromFile, File: "/h/config.toml", Line: 3}
	view := app.ConfigView{File: "/h/config.toml", Settings: []app.ConfigSetting{
		set("m1", file, "model"),
		set("on-failure", config.Source{Kind: config.FromOverride}, "approval_policy"),
		set("low", config.Source{Kind: config.FromProfile, Name: "fast", File: "/h/config.toml"}, "model_verbosity"),
		set([]string{"/a"}, file, "sandbox_workspace_write", "writable_roots"),
		set(true, config.Source{}, "sandbox_workspace_write", "network_access"),
		{Key: "web_search", Path: []string{"web_search"}, Value: "live", Source: file, Ineffective: true},
	}}
	if cwd == "/w/sub" {
		view.Trust = "trusted"
	}
	return view, nil
}

func (c configured) SaveConfig(edits ...app.ConfigEdit) (string, error) {
	for _, e := range edits {
		if e.Path[0] != "model" {
			return "", errors.New("no")
		}
	}
	*c.saved = append(*c.saved, edits...)
	return "/h/config.toml", nil
}

func (configured) Allowed() ([]p.SandboxMode, []p.ApprovalPolicy) {
	return []p.SandboxMode{p.SandboxReadOnly, p.SandboxWorkspaceWrite}, []p.ApprovalPolicy{p.ApprovalOnFailure, p.ApprovalOnRequest}
}

func (configured) MCPStatus() []app.MCPStatus {
	return []app.MCPStatus{
		{Name: "docs", State: app.MCPRunning, Program: "Docs Server 1.2", Tools: []app.MCPToolStatus{
			{Name: "find", Description: "Finds.", ReadOnly: true, Parameters: json.RawMessage(`{"type":"object"}`)},
		}},
		{Name: "far", State: app.MCPFailed, Error: "refused", Address: "https://example.com", Token: true},
	}
}

func configuredClient(t *testing.T) (*client, *[]app.ConfigEdit) {
	saved := &[]app.ConfigEdit{}
	x := newSiteWith(t, enginetest.New(t, enginetest.Options{}))
	x.s.o.Local = configured{saved: saved}
	return x.connect(), saved
}

// compact is JSON that is easy to compare.
func compact(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfigRead(t *testing.T) {
	c, _ := configuredClient(t)
	got := c.result("config/read", `{"cwd":"sub"}`)
	want := `{"approval_policy":"on-request","model":"m1","model_verbosity":"low","projects":{"/w/sub":{"trust_level":"trusted"}},` +
		`"sandbox_workspace_write":{"network_access":true,"writable_roots":["/a"]}}`
	if config := compact(t, at(got, "config")); config != want {
		t.Errorf("got  %s\nwant %s", config, want)
	}
	for key, want := range map[string]string{
		"model": `{"file":"/h/config.toml","type":"user"}`, "model_verbosity": `{"file":"/h/config.toml","profile":"fast","type":"user"}`,
		"approval_policy": `{"type":"sessionFlags"}`, "sandbox_workspace_write.network_access": "null", "web_search": "null",
	} {
		if name := compact(t, at(got, "origins", key, "name")); name != want {
			t.Errorf("%s comes from %s, want %s", key, name, want)
		}
	}
	if at(got, "layers") != nil {
		t.Error("layers that the user did not ask for")
	}
	layers := at(c.result("config/read", `{"includeLayers":true}`), "layers").([]any)
	if len(layers) != 3 || at(layers[0], "name", "type") != "sessionFlags" || at(layers[2], "config", "model") != "m1" {
		t.Errorf("%v", layers)
	}
	if at(got, "origins", "model", "version") != at(layers[2], "version") {
		t.Error("a layer has two versions")
	}
}

func TestConfigWrite(t *testing.T) {
	c, saved := configuredClient(t)
	got := c.result("config/batchWrite", `{"edits":[{"keyPath":"model","value":"m2","mergeStrategy":"replace"}],"filePath":null}`)
	if at(got, "status") != "ok" || at(got, "filePath") != "/h/config.toml" {
		t.Errorf("%v", got)
	}
	c.result("config/value/write", `{"keyPath":"model","value":null,"mergeStrategy":"upsert","filePath":"/h/config.toml"}`)
	if text := fmt.Sprint(*saved); text != "[{[model] m2} {[model] <nil>}]" {
		t.Errorf("saved %s", text)
	}
	for _, edit := range []string{`{"keyPath":"notify","value":"x"}`, `{"keyPath":"model","value":[1]}`, `{"keyPath":"model","value":"x","filePath":"/etc/passwd"}`} {
		c.refused("config/value/write", edit)
	}
	if len(*saved) != 2 {
		t.Errorf("saved %v", *saved)
	}
}

func TestRequirements(t *testing.T) {
	c, _ := configuredClient(t)
	want := `{"requirements":{"allowedApprovalPolicies":["on-request"],"allowedSandboxModes":["read-only","workspace-write"]}}`
	if got := compact(t, c.result("configRequirements/read", `null`)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, want := range []bool{true, true, false} {
		if profile := at(c.result("permissionProfile/list", `{}`), "data").([]any)[i]; at(profile, "allowed") != want {
			t.Errorf("%v", profile)
		}
	}
}

func TestServerStatus(t *testing.T) {
	c, _ := configuredClient(t)
	got := c.result("mcpServerStatus/list", `{"detail":"full","limit":1}`)
	want := `[{"authStatus":"unsupported","httpOrigin":null,"name":"docs","resourceTemplates":[],"resources":[],"runtimeStatus":"connected",` +
		`"serverInfo":{"name":"Docs Server","version":"1.2"},"tools":{"find":{"annotations":{"readOnlyHint":true},"description":"Finds.",` +
		`"inputSchema":{"type":"object"},"name":"find"}},"toolsError":null}]`
	if data := compact(t, at(got, "data")); data != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	got = c.result("mcpServerStatus/list", fmt.Sprintf(`{"cursor":%q}`, at(got, "nextCursor")))
	want = `{"data":[{"authStatus":"bearerToken","httpOrigin":"https://example.com","name":"far","resourceTemplates":[],"resources":[],` +
		`"runtimeStatus":"failed","serverInfo":null,"tools":{},"toolsError":"refused"}],"nextCursor":null}`
	if text := compact(t, got); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if got := c.result("mcpServerStatus/list", `{"serverName":"docs"}`); len(at(got, "data").([]any)) != 1 {
		t.Errorf("%v", got)
	}
}

// A client switches plan mode on and off with its collaboration mode, whose model counts.
func TestPlanMode(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		mode := func(want string, plan bool) {
			t.Helper()
			snap, err := x.e.Resume(t.Context(), c.id)
			if err != nil || snap.Settings.Plan != plan || snap.Settings.Model != want {
				t.Errorf("the settings are %+v, %v", snap.Settings, err)
			}
		}
		c.result("thread/settings/update", `{"threadId":"T","collaborationMode":{"mode":"plan","settings":{"model":"puppet","reasoning_effort":null,"developer_instructions":null}}}`)
		c.until("thread/settings/updated")
		if got := at(c.last, "params", "threadSettings", "collaborationMode", "mode"); got != "plan" {
			t.Errorf("told %v", c.last)
		}
		mode("puppet", true)
		start := `{"threadId":"T","input":[{"type":"text","text":"go"}],"collaborationMode":{"mode":%q,"settings":{"model":%q}}}`
		c.result("turn/start", fmt.Sprintf(start, "plan", "puppet"))
		x.e.Request().Answer("a plan")
		c.until("turn/completed")
		mode("puppet", true)
		c.result("turn/start", fmt.Sprintf(start, "default", "other"))
		x.e.Request().Answer("done")
		c.until("turn/completed")
		mode("other", false)
		if got := c.refused("turn/start", fmt.Sprintf(start, "chaos", "m")); got != `-32602 collaborationMode: the mode "chaos" is neither plan nor default` {
			t.Error(got)
		}
	})
}
