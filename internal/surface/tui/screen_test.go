package tui

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	p "github.com/fermata-agent/fermata/protocol"
)

// A call behind another waits, and is shown in its own form.
func TestWaitingCall(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		id := p.CallID{Turn: 2, Response: 1, Index: 1}
		d.happens(&p.TurnStarted{}, &p.ToolCall{Call: id, Name: "exec_command", Arguments: `{"cmd":"make test","yield_time_ms":1000}`})
		d.wait(2 * time.Second)
		d.sees("$ make test", "… waiting")
		d.seesNot("yield_time_ms", "running")
		d.happens(&p.CallStarted{Call: id})
		d.sees("running")
	})
}

func TestRetriesAreOneLineWithACountdown(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.happens(&p.TurnStarted{}, &p.ModelRequested{Response: 1}, &p.ModelRetry{Attempt: 1, Max: 5, Wait: 10 * time.Second, Reason: "overloaded"})
		d.sees("↻ retry 1 of 5 in 10 s: overloaded")
		d.wait(3 * time.Second)
		d.sees("↻ retry 1 of 5 in 7 s: overloaded")
		d.happens(&p.ModelRequested{Response: 2}, &p.ModelRetry{Attempt: 2, Max: 5, Wait: 20 * time.Second, Reason: "overloaded"})
		d.sees("retry 2 of 5 in 20 s")
		d.seesNot("retry 1 of 5")
	})
}

// A tool of an MCP server is asked about with its server and its arguments, and shown so.
func TestToolOfAServer(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		id := p.CallID{Turn: 2, Response: 1, Index: 1}
		of, args := p.MCPTool{Server: "docs", Name: "find"}, json.RawMessage(`{"query":"the \u001b[31mred one","limit":3}`)
		d.happens(&p.TurnStarted{}, &p.ToolCall{Call: id, Name: "docs__find", Arguments: string(args)},
			&p.ApprovalRequested{Call: id, Kind: p.ApproveTool, MCP: &of, Detail: args, Cwd: "/w"})
		d.wait(time.Second)
		d.sees("Allow this tool call?", "server  docs", "tool    find", "limit: 3", "query: the ␛[31mred one", "yes, this tool for this session")
		d.happens(&p.ApprovalResolved{Call: id, Decision: p.Approved}, &p.CallStarted{Call: id}, &p.ServerCallStarted{Call: id, Tool: of, Arguments: args})
		d.wait(2 * client.FrameTime)
		d.sees("⇢ docs · find", "limit: 3", "running")
		d.happens(&p.ToolOutput{Call: id, Output: "found it", MCP: &p.MCPResult{Tool: of}})
		d.sees("⇢ docs · find", "found it", "✓")
	})
}

func projects(t *testing.T) *project.Store {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"HOME": home, "FERMATA_HOME": home}
	o := config.Options{Env: func(name string) string { return env[name] }, Cwd: "/w"}
	cfg, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	store, _, err := project.Open(o, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Who is asked about a command can allow its like for good, and take that back.
func TestLastingPermission(t *testing.T) {
	store := projects(t)
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Projects = store })
		d.say("do it", "enter")
		r := e.Request()
		r.Call("c1", "work", "{}")
		r.End()
		e.Run().Ask("bash", "-lc", "make -n all")
		d.wait(time.Second)
		d.sees("p  yes, and don't ask again for `make -n …` in /w")
		d.press("p")
		d.wait(time.Second)
		list := store.Permissions("/w")
		if len(list) != 1 || !strings.HasPrefix(list[0].String(), "make -n") {
			t.Fatalf("permissions: %v", list)
		}
		e.Run().Finish("made")
		e.Request().Answer("done")
		d.wait(time.Second)
		d.say("/permissions", "enter")
		d.sees("make -n")
		d.press("enter")
		d.wait(time.Second)
		if list := store.Permissions("/w"); len(list) != 0 {
			t.Errorf("after it was revoked: %v", list)
		}
	})
}

// Rules of files are listed beside permissions; they are changed in the file.
func TestRulesAreListed(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "rules", "mine.rules"), []byte(`prefix_rule(pattern=["git", "push"], decision="forbidden")`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, _, err := project.Open(config.Options{Home: home, Cwd: "/w"}, &config.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Projects = store })
		d.say("/permissions", "enter")
		d.wait(time.Second)
		d.sees("git push", "forbidden")
		d.press("enter")
		d.wait(time.Second)
		d.sees("edit rules/*.rules")
	})
}

// The first message waits until it is known whether the directory is trusted.
func TestTrustIsAskedFirst(t *testing.T) {
	store := projects(t)
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Projects, o.Prompt = store, "hello"
			o.AsksForTrust = func(dir, _ string) bool { return store.Trust(dir) == "" }
		})
		d.wait(time.Second)
		d.sees("Do you trust /w?", "not a git repository")
		if d.m.conv.ID != "" {
			t.Fatal("the conversation has begun")
		}
		d.answer("y")
		e.Request().Answer("hi")
		d.wait(time.Second)
		d.sees("hi")
		if store.Trust("/w") != project.Trusted {
			t.Errorf("trust: %q", store.Trust("/w"))
		}
		again := drive(t, e, func(o *Options) {
			o.Projects, o.AsksForTrust = store, func(dir, _ string) bool { return store.Trust(dir) == "" }
		})
		again.wait(time.Second)
		again.seesNot("Do you trust")
	})
}

// raw collects what is written to the terminal beside the screen.
func raw(d *driver, msgs ...tea.Msg) string {
	var out strings.Builder
	var run func(tea.Cmd)
	run = func(cmd tea.Cmd) {
		if cmd == nil {
			return
		}
		switch msg := cmd().(type) {
		case tea.BatchMsg:
			for _, c := range msg {
				run(c)
			}
		case tea.RawMsg:
			out.WriteString(msg.Msg.(string))
		}
	}
	for _, msg := range msgs {
		run(d.m.take(msg))
		d.check()
	}
	return out.String()
}

const copiedHello = "\x1b]52;c;aGVsbG8=\a" // hello

func TestCopy(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "say it", "It is:\n\n```\nhello\n```\n")
		d.say("/copy 2", "left")
		if got := raw(d, press("enter")); got != "" {
			t.Errorf("there is no second block, and it copies %q", got)
		}
		d.sees("1 code block")
		d.say("/copy 1", "left")
		if got := raw(d, press("enter")); got != "\x1b]52;c;aGVsbG8K\a" {
			t.Errorf("copied %q", got)
		}
	})
}

func TestMouseSelectionIsCopied(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "hello", "x")
		click := tea.Mouse{X: 3, Y: 0, Button: tea.MouseLeft} // behind the margin and the mark
		end := tea.Mouse{X: 7, Y: 0, Button: tea.MouseLeft}
		got := raw(d, tea.MouseClickMsg(click), tea.MouseMotionMsg(end), tea.MouseReleaseMsg(end))
		if got != copiedHello {
			t.Errorf("copied %q", got)
		}
		d.sees("copied the selection (5 characters)")
		off := drive(t, e, func(o *Options) { o.Config = &config.Config{} })
		if off.m.View().MouseMode != tea.MouseModeNone {
			t.Error("the mouse is taken although it should be the terminal's")
		}
	})
}

func TestTitleSaysWhatGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		want := func(part string) {
			t.Helper()
			if got := d.m.View().WindowTitle; !strings.Contains(got, part) {
				t.Errorf("title %q, want %q", got, part)
			}
		}
		want("fermata")
		d.say("do it", "enter")
		r := e.Request()
		d.wait(2 * client.FrameTime)
		want("⠧ working")
		r.Call("c1", "work", "{}")
		r.End()
		e.Run().Ask("ls")
		d.wait(time.Second)
		want("● waiting")
		d.answer("y")
		e.Run().Finish("ok")
		e.Request().Answer("all of it")
		d.wait(time.Second)
		want("✓ done")
		d.sees("✓ Done in ")
	})
}

func TestBell(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Config = &config.Config{Notifications: true, Screen: config.Screen{Bell: true}}
		})
		ask := d.m.notify.Notify("now")
		if got := ask().(tea.RawMsg).Msg; got != "\a" {
			t.Errorf("the person looks, and the terminal is sent %q", got)
		}
		d.send(tea.BlurMsg{})
		if got := d.m.notify.Notify("now")().(tea.RawMsg).Msg.(string); !strings.Contains(got, "\x1b]9;now") || !strings.Contains(got, "\x1b]777;notify;fermata;now") {
			t.Errorf("the person looks elsewhere, and the terminal is sent %q", got)
		}
	})
}

func TestNoSuchTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		for _, line := range []string{"/undo-turn 99", "/revert 99"} {
			d.say(line, "enter")
			d.sees("there is no turn 99; the last one is 1")
		}
	})
}

// A model is looked up in the catalogue, which has its window and its price.
func TestModelsOfTheCatalogue(t *testing.T) {
	c := catalogue.Open(filepath.Join(t.TempDir(), "none"))
	var some catalogue.Model
	for m := range c.All() {
		if m.Provider == "openai" && m.Price.Known && len(m.Efforts) > 0 {
			some = m
			break
		}
	}
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Models = func(context.Context) ([]app.ModelRow, error) {
				return []app.ModelRow{{Provider: "openai", Model: some.ID}}, nil
			}
		})
		d.send(tea.WindowSizeMsg{Width: 120, Height: 30})
		d.say("/model", "enter")
		d.sees(some.ID, "$ per M in / out", "window")
		d.press("esc")
		d.say("/model "+some.ID+" enormous", "enter")
		d.sees(`no effort "enormous"`)
		d.say("/model "+some.ID+"x", "enter")
		d.sees("not in the catalogue; did you mean " + some.ID + "?")
		d.say("/effort enormous", "enter") // of a model that nothing is known of
		d.sees(`no effort "enormous": use none, minimal, low`)
		d.say("/model "+strings.ReplaceAll(some.ID, "-", ""), "enter")
		d.sees("did you mean " + some.ID + "?")
	})
}
