package tui

import (
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// Who is asked about a tool of an MCP server can allow it for good.
func TestLastingPermissionForATool(t *testing.T) {
	store := projects(t)
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Projects = store })
		of := p.MCPTool{Server: "docs", Name: "write"}
		working(d).Question(p.ApprovalRequested{Kind: p.ApproveTool, MCP: &of, Cwd: "/w", Command: []string{"docs.write", "{}"}})
		d.wait(time.Second)
		d.sees("Allow this tool call?", "p  yes, and don't ask again for docs.write in /w")
		d.press("p")
		d.wait(time.Second)
		if list := store.Permissions("/w"); len(list) != 1 || list[0].Tool != of {
			t.Fatalf("permissions: %v", list)
		}
		e.Run().Finish("written")
		e.Request().Answer("done")
		d.wait(time.Second)
		d.say("/permissions", "enter")
		d.sees("docs.write")
		d.press("enter")
		d.wait(time.Second)
		if list := store.Permissions("/w"); len(list) != 0 {
			t.Errorf("after it was revoked: %v", list)
		}
	})
}

// The window says that somebody is waited for also while an MCP server asks something.
func TestTitleWhileAServerAsks(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		run := working(d)
		answer := questioned(d, run, nameSchema)
		if got := d.m.state().Title(); got != "● waiting · fermata" {
			t.Errorf("the window is called %q", got)
		}
		d.sees("● waiting for your answer")
		d.press("n")
		d.wait(time.Second)
		<-answer
		if got := d.m.state().Title(); got != "⠧ working · fermata" {
			t.Errorf("then the window is called %q", got)
		}
		run.Finish("thanks")
		e.Request().Answer("done")
		d.wait(time.Second)
	})
}
