package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
)

func TestResources(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	defs := func() map[string]config.MCPServer { return map[string]config.MCPServer{"s": self(t, "plain")} }
	first := openIn(t, dir, cache, defs())
	first.start(t)
	first.Close()
	r := openIn(t, dir, cache, defs()) // its list is known, and it is not started
	if got := r.Resources("/w"); len(got) != 5 || got[0].Server != "s" || got[0].URI != "doc://long" || !got[4].Template {
		t.Errorf("%+v", got)
	}
	for uri, want := range map[string]string{
		"doc://one":     "[resource doc://one]\nthe text of doc://one",
		"doc://by/me":   "the text of doc://by/me",
		"doc://long":    "the end",
		"doc://picture": "[resource doc://picture]",
	} {
		content, err := r.ReadResource(t.Context(), "/w", "s", uri)
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if text := protocol.PlainText(content); !strings.Contains(text, want) || len(text) > maxAttached+200 {
			t.Errorf("%s: %d bytes %.100q, want %q", uri, len(text), text, want)
		}
		if picture := len(content) == 2 && content[1].ImageURL == "data:image/png;base64,cG5n"; picture != (uri == "doc://picture") {
			t.Errorf("%s: %+v", uri, content)
		}
	}
	for _, c := range [][3]string{{"/w", "s", "doc://none"}, {"/w", "x", "doc://one"}} {
		if _, err := r.ReadResource(t.Context(), c[0], c[1], c[2]); err == nil {
			t.Errorf("%v was read", c)
		} else if !strings.Contains(err.Error(), "MCP server "+c[1]) {
			t.Error(err)
		}
	}
}

func TestPrompts(t *testing.T) {
	r := open(t, map[string]config.MCPServer{"s": self(t, "plain")})
	r.start(t)
	list := r.Prompts("/w")
	if len(list) != 1 || list[0].Server != "s" || list[0].Name != "Greet" || list[0].Usage() != "NAME [HOW]" {
		t.Fatalf("%+v", list)
	}
	for words, want := range map[string]string{
		"Ann":                 "Greet Ann \nAnswer:\nHello!",
		"Ann loudly":          "Greet Ann loudly\nAnswer:\nHello!",
		"how=loudly Ann":      "Greet Ann loudly\nAnswer:\nHello!",
		"a=b":                 "Greet a=b \nAnswer:\nHello!",
		"":                    "/s.Greet needs the argument name: /s.Greet NAME [HOW]",
		"Ann loudly and long": "/s.Greet takes 2 arguments: NAME [HOW]",
	} {
		content, err := r.GetPrompt(t.Context(), list[0], "/w", strings.Fields(words))
		got := protocol.PlainText(content)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// A model finds and reads resources by two tools.
func TestResourceTools(t *testing.T) {
	own, theirs := self(t, "plain"), self(t, "plain")
	theirs.Project = "/w"
	r := open(t, map[string]config.MCPServer{"s": own, "p": theirs})
	if list := r.ResourceTools("/w", nil); list != nil {
		t.Error("offered before a server is known to have resources")
	}
	r.start(t)
	use := func(name, arguments string) tool.Result {
		c := tool.Call{ID: protocol.CallID{Turn: 1, Response: 1}, Name: name, Arguments: arguments, Host: r}
		c.Settings.Cwd, c.Settings.Approval = "/w", protocol.ApprovalOnRequest
		return tool.Run(t.Context(), tool.Find(r.ResourceTools("/w", nil), name), c)
	}
	for arguments, want := range map[string]string{
		``:                `"uri":"doc://one"`,
		`{"server":"s"}`:  `{"server":"s","uri":"doc://by/{name}","name":"by","template":true}`,
		`{"server":"no"}`: "there is no MCP server no",
	} {
		if out := use("list_mcp_resources", arguments).Output; !strings.Contains(out.Output, want) || strings.Contains(out.Output, `"p"`) != (arguments == "") {
			t.Errorf("%s: %+v", arguments, out)
		}
	}
	out := use("read_mcp_resource", `{"server":"s","uri":"doc://one"}`).Output
	if out.Output != "[resource doc://one]\nthe text of doc://one" || out.Failed || out.MCP == nil || out.MCP.Tool.Name != resourceCall {
		t.Errorf("%+v", out)
	}
	if got := fmt.Sprintf("%T", r.records[0]); len(r.records) != 1 || got != "*protocol.ServerCallStarted" {
		t.Errorf("recorded %v", r.records)
	}
	if res := use("read_mcp_resource", `{"server":"p","uri":"doc://one"}`); res.Ask == nil || string(res.Ask.Detail) != `{"uri":"doc://one"}` {
		t.Errorf("what a project's server says is believed: %+v", res.Output)
	}
	if out := use("read_mcp_resource", `{"server":"s","uri":"doc://none"}`).Output; !out.Failed || !strings.Contains(out.Output, "not found") {
		t.Errorf("%+v", out)
	}
}
