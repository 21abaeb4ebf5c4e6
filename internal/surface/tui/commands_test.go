package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/commands"
	p "github.com/fermata-agent/fermata/protocol"
)

// answered says something and has it answered.
func answered(d *driver, text, reply string) {
	d.t.Helper()
	d.say(text, "enter")
	d.e.Request().Answer(reply)
	d.wait(time.Second)
}

func TestEveryCommandHasHelp(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.send(tea.WindowSizeMsg{Width: 80, Height: 60})
		d.say("/help", "enter")
		for _, s := range slashes() {
			if !s.Hidden {
				d.sees("/"+s.Name, s.Help)
				if name := strings.TrimSpace("/" + s.Name + " " + s.Args); len(name) > 23 {
					t.Errorf("%s is wider than its column", name)
				}
			}
		}
		d.sees("Ctrl-R", "Esc, Ctrl-C")
		d.press("esc")
		d.sees("ready")
		d.seesNot("Commands and keys")
		d.say("/nonsense", "enter")
		d.sees("there is no command /nonsense")
	})
}

func TestNewConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "first answer")
		old := d.m.conv.ID
		d.say("/new", "enter")
		d.wait(time.Second)
		d.sees("fermata test")
		d.seesNot("first answer")
		answered(d, "two", "second answer")
		if d.m.conv.ID == old {
			t.Error("it is the same conversation")
		}
		d.seesNot("first answer")
	})
}

func TestForkedConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "first answer")
		old := d.m.conv.ID
		d.say("/fork", "enter")
		d.wait(time.Second)
		d.sees("this is a copy", "first answer")
		answered(d, "two", "second answer")
		if d.m.conv.ID == old {
			t.Error("it is the same conversation")
		}
		for ev := range e.Read(t.Context(), old) {
			if b, ok := ev.Body.(*p.AssistantMessage); ok && b.Text == "second answer" {
				t.Error("the original has changed")
			}
		}
	})
}

func TestPickedConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		first := conversationOf(e, 1)
		e.Must(first, p.Rename{Title: "the first"})
		second := conversationOf(e, 1)
		e.Must(second, p.Rename{Title: "the second"})
		e.Begin() // nothing was said in it
		d := drive(t, e)
		d.say("/resume", "enter")
		d.wait(time.Second)
		d.sees("the first", "the second", "completed", "just now")
		if got := strings.Count(d.screen(), "just now"); got != 2 {
			t.Errorf("%d conversations are offered", got)
		}
		d.say("first", "enter")
		d.wait(time.Second)
		if d.m.conv.ID != first || d.m.overlay != nil {
			t.Errorf("it shows %q", d.m.conv.ID)
		}
		d.say("/resume", "enter")
		d.press("esc")
		d.sees("ready")
	})
}

// brokenList cannot list.
type brokenList struct{ engine.Engine }

func (brokenList) List(context.Context, engine.ListOptions) (engine.Page, error) {
	return engine.Page{}, errors.New("the disk is gone")
}

func TestListThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Engine, o.Pick = brokenList{e}, true })
		d.wait(time.Second)
		d.sees("the disk is gone")
		d.seesNot("no conversations", "loading")
	})
}

// A conversation that cannot be opened, in a list that cannot be read: both are said.
func TestResumeWithAListThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, resuming(p.NewConversationID(time.Now())), func(o *Options) { o.Engine = brokenList{e} })
		d.wait(time.Second)
		d.sees("the disk is gone", "not found")
		d.seesNot("no conversations", "loading")
	})
}

// partialList cannot read one directory.
type partialList struct{ engine.Engine }

func (l partialList) List(ctx context.Context, o engine.ListOptions) (engine.Page, error) {
	page, err := l.Engine.List(ctx, o)
	page.Unread = []string{"cannot read the conversations in /some/day: not a directory"}
	return page, err
}

func TestListWithPartsMissing(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		conversationOf(e, 1)
		d := drive(t, e, func(o *Options) { o.Engine, o.Pick = partialList{e}, true })
		d.wait(time.Second)
		d.sees("question 1.", "cannot read the conversations in /some/day")
	})
}

// Many conversations arrive page by page.
func TestManyConversations(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		for range 80 { // a page has 50
			conversationOf(e, 1)
		}
		d := drive(t, e, func(o *Options) { o.Pick = true })
		d.wait(time.Second)
		d.sees("80")
	})
}

func TestChooseModel(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Models = func(context.Context) ([]app.ModelRow, error) {
				return []app.ModelRow{{Provider: "test", Model: "puppet", Note: "here"}, {Provider: "far", Model: "other", Note: "there"}}, nil
			}
		})
		d.say("/model", "enter")
		d.wait(time.Second)
		d.sees("puppet", "other", "there")
		d.say("other", "enter")
		d.sees("the model is other")
		d.wait(10 * time.Second)
		d.sees("other ·")
		answered(d, "one", "yes")
		if s := d.m.conv.Transcript.Settings; s.Model != "other" || s.Provider != "far" {
			t.Errorf("it began with %s of %s", s.Model, s.Provider)
		}
		d.say("/model third", "enter")
		d.wait(time.Second)
		if s := d.m.conv.Transcript.Settings; s.Model != "third" {
			t.Errorf("the model is %s", s.Model)
		}
		d.say("/model", "enter") // which lists the one in use, too
		d.wait(time.Second)
		d.sees("* third", "in use", "puppet")
	})
}

func TestChooseApprovals(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		for _, begun := range []bool{false, true} {
			if begun {
				answered(d, "one", "yes")
			}
			for _, l := range app.Presets {
				d.say("/approvals", "enter")
				d.sees("full access")
				d.say(l.Help, "enter")
				d.wait(time.Second)
				if s := d.m.Settings(); s.Approval != l.Approval || s.Sandbox.Mode != l.Mode {
					t.Errorf("%s gives %s, %s", l.Name, s.Approval, s.Sandbox.Mode)
				}
			}
		}
	})
}

// What is configured of the sandbox is in force whichever preset is chosen.
func TestApprovalsKeepWhatIsConfigured(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) {
			o.Config = &config.Config{}
			o.Config.WorkspaceWrite.WritableRoots, o.Config.WorkspaceWrite.NetworkAccess = []string{"/more"}, true
		})
		d.say("/approvals", "enter")
		d.say("asks before anything else", "enter")
		d.wait(time.Second)
		if s := d.m.Settings().Sandbox; !slices.Equal(s.WritableRoots, []string{"/more"}) || !s.NetworkAccess {
			t.Errorf("the sandbox is %+v", s)
		}
	})
}

func TestCommandsThatNeedAConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		for _, line := range []string{"/compact", "/fork", "/undo-turn", "/kill 1"} {
			d.say(line, "enter")
			d.sees("no conversation yet")
			d.press("x", "backspace") // takes the hint away
		}
		d.say("/ps", "enter")
		d.sees("no background commands are running")
		d.say("/kill", "enter")
		d.sees("/kill N")
	})
}

func TestCommandsThatNeedAnIdleConversation(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("one", "enter")
		r := e.Request()
		for _, line := range []string{"/new", "/resume", "/fork", "/compact", "/undo-turn"} {
			d.say(line, "enter")
			d.sees("not while a turn runs")
			d.press("x", "backspace")
		}
		d.say("!ls", "enter")
		d.sees("when the turn has ended")
		if d.m.comp.Text() != "!ls" {
			t.Errorf("the composer holds %q", d.m.comp.Text())
		}
		r.Answer("ok")
	})
}

func TestCompact(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		answered(d, "one", "yes")
		d.say("/compact", "enter")
		e.Request().Answer("a summary")
		d.wait(time.Second)
		d.sees("summarised", "ready")
	})
}

func TestDiff(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		tree, fail := "", error(nil)
		d := drive(t, e, func(o *Options) {
			o.Changes = func(context.Context, string) (string, error) { return tree, fail }
		})
		d.say("/diff", "enter")
		d.sees("nothing differs")
		tree = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-```old\n+new\n"
		d.say("/diff", "enter")
		d.sees("What differs from the last commit", "-```old", "+new")
		d.press("q")
		fail = errors.New("no repository")
		d.say("/diff", "enter")
		d.sees("no repository")
		d.m.conv.Transcript.Diff = "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
		d.say("/diff", "enter")
		d.sees("What the last turn changed", "b/y")
	})
}

func TestUndo(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		did := 0
		files, fail := 2, error(nil)
		var asked []p.TurnID
		d := drive(t, e, func(o *Options) {
			o.Undo = func(_ context.Context, _ p.ConversationID, turn p.TurnID) (*app.Undo, error) {
				asked = append(asked, turn)
				return &app.Undo{Turn: 3, Files: files, Diff: "-new\n+old\n", Notes: []string{"commands are not undone"}, Do: func(context.Context) error {
					did++
					return fail
				}}, nil
			}
		})
		answered(d, "one", "yes")
		d.say("/undo-turn 1", "enter")
		d.sees("Restore 2 files to the state before turn 3?", "+old", "commands are not undone")
		d.press("enter") // the default is no
		d.sees("nothing was undone")
		if did != 0 {
			t.Fatal("it was done")
		}
		d.say("/undo-turn", "enter")
		d.press("y")
		d.sees("turn 3 was undone")
		fail = errors.New("a file changed")
		d.say("/undo-turn", "enter")
		d.press("y")
		d.sees("a file changed")
		files = 0
		d.say("/undo-turn", "enter")
		d.sees("are as they were")
		d.say("/undo-turn x", "enter")
		d.sees("N is the number of a turn")
		if did != 2 || len(asked) != 4 || asked[0] != 1 || asked[1] != 0 {
			t.Errorf("done %d times; asked for %v", did, asked)
		}
	})
}

func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Branch = func(context.Context, string) string { return "trunk" } })
		answered(d, "one", "yes")
		d.say("/status", "enter")
		d.sees("conversation", string(d.m.conv.ID), "puppet (test)", "trunk", "read-only", "10 in (0 of them cached), 1 out", "11 tokens")
		d.press("esc")
		d.m.conv.Transcript.Title = "\x1b[31mtwo\nlines"
		d.say("/status", "enter")
		d.sees("title          ␛[31mtwo␊lines")
	})
}

func TestEditor(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		var given string
		d := drive(t, e, func(o *Options) {
			o.Editor = func(_ context.Context, text string) (*exec.Cmd, func() (string, error), error) {
				given = text
				return exec.Command("true"), func() (string, error) { return text + " more\n", nil }, nil
			}
		})
		d.say("some", "ctrl+g")
		if given != "some" {
			t.Errorf("the editor was given %q", given)
		}
		d.send(commands.Edited{Text: "some more\n"})
		if got := d.m.comp.Text(); got != "some more" {
			t.Errorf("the composer holds %q", got)
		}
		d.send(commands.Edited{Err: errors.New("exit status 1")})
		d.sees("the editor: exit status 1")
		if got := d.m.comp.Text(); got != "some more" {
			t.Errorf("after an error the composer holds %q", got)
		}

		d.m.o.Image = readImage
		d.send(tea.PasteMsg{Content: "/a/one.png"})
		d.press("ctrl+g")
		d.send(commands.Edited{Text: "changed: " + given})
		d.press("enter")
		if got := pictures(e.Request()); got != "data:/a/one.png" {
			t.Errorf("after the editor was given %q the model is sent %q", given, got)
		}
	})
}

func TestEditorThatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.press("ctrl+g")
		d.sees("set VISUAL or EDITOR")
		d = drive(t, e, func(o *Options) {
			o.Editor = func(context.Context, string) (*exec.Cmd, func() (string, error), error) {
				return nil, nil, errors.New("no disk")
			}
		})
		d.press("ctrl+g")
		d.sees("no disk")
	})
}

// A message that is refused is back in the composer.
func TestRefusedMessage(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		bad := true
		d := drive(t, e, func(o *Options) {
			settings := o.Settings
			o.Settings = func(ctx context.Context) (p.Settings, error) {
				if bad {
					return p.Settings{}, errors.New("no key")
				}
				return settings(ctx)
			}
		})
		d.sees("no key")
		d.say("hello", "enter")
		d.wait(time.Second)
		d.sees("no key", "│ › hello")
		bad = false
		d.press("enter")
		e.Request().Answer("hi")
		d.wait(time.Second)
		d.sees("hi")
	})
}

func TestShellLine(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("!ls -l", "enter")
		run := e.Run()
		d.wait(time.Second)
		d.sees("!ls -l", "working")
		run.Print("total 0\n")
		run.Finish("total 0\n")
		d.wait(time.Second)
		d.sees("total 0", "ready")
		e.Idle() // the model was not asked
		d.say("!sleep 9", "enter")
		e.Run()
		d.press("esc")
		d.wait(time.Second)
		d.sees("interrupted after", "ready")
	})
}

// Who looks elsewhere is notified of the end of a turn, and of an approval, if that is
// configured; who looks on is not.
func TestNotifications(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e, func(o *Options) { o.Config = &config.Config{Notifications: true} })
		if d.m.notify.Notify("x") != nil || !d.m.View().ReportFocus {
			t.Error("notified while the terminal has the focus, or its focus is not reported")
		}
		d.send(tea.BlurMsg{})
		if cmd := d.m.notify.Notify("the end"); cmd == nil || !strings.Contains(fmt.Sprint(cmd()), "the end") {
			t.Error("not notified while the person looks elsewhere")
		}
		d.send(tea.FocusMsg{})
		if d.m.notify.Notify("x") != nil {
			t.Error("notified again")
		}
		d = drive(t, e)
		d.send(tea.BlurMsg{})
		if d.m.notify.Notify("x") != nil || d.m.View().ReportFocus {
			t.Error("notified without being asked to")
		}
	})
}
