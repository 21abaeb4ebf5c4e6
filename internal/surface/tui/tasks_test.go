package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// lastInput is what the model was asked last.
func lastInput(r *enginetest.Request) string {
	items := r.Prompt.Items
	return p.PlainText(items[len(items)-1].Content)
}

func TestInit(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("/init", "enter")
		r := e.Request()
		if got := lastInput(r); !strings.Contains(got, "AGENTS.md") {
			t.Errorf("the model is asked %q", got)
		}
		r.Answer("Written.")
		d.wait(time.Second)
		d.sees("Written.", "ready")
	})
}

func TestReview(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		for args, want := range map[string]string{"/review": "working tree", "/review main": "git diff main...HEAD"} {
			d.say(args, "enter")
			r := e.Request()
			if got := lastInput(r); !strings.Contains(got, want) || !strings.Contains(got, "Do not change any files") {
				t.Errorf("%s: the model is asked %q", args, got)
			}
			r.Answer("Nothing is wrong.")
			d.wait(time.Second)
			d.sees("Nothing is wrong.")
		}
	})
}

func TestRename(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("/rename the parser", "enter")
		d.sees("there is no conversation yet")
		answered(d, "one", "first answer")
		d.say("/rename", "enter")
		d.sees("/rename TITLE")
		d.say("/rename the parser", "enter")
		d.wait(time.Second)
		snap, err := e.Resume(t.Context(), d.m.conv.ID)
		if err != nil || snap.Title != "the parser" {
			t.Errorf("the title is %q, error %v", snap.Title, err)
		}
		if got := d.m.state().Title(); got != "✓ done · the parser" {
			t.Errorf("the window is called %q", got)
		}
	})
}

func TestArchive(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("/archive", "enter")
		d.sees("there is no conversation yet")
		answered(d, "one", "first answer")
		id := d.m.conv.ID
		d.say("/archive", "enter")
		d.wait(time.Second)
		d.sees("archived; fermata unarchive " + string(id))
		d.seesNot("first answer")
		page, err := e.List(t.Context(), engine.ListOptions{Limit: 9})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("listed: %+v, error %v", page.Items, err)
		}
		page, err = e.List(t.Context(), engine.ListOptions{Limit: 9, Archived: true})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != id {
			t.Errorf("archived: %+v, error %v", page.Items, err)
		}
		d.say("two", "enter")
		r := e.Request()
		d.say("/archive", "enter")
		d.sees("not while a turn runs")
		r.Answer("second answer")
		d.wait(time.Second)
	})
}

func TestExport(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		var fails error
		d := drive(t, e, func(o *Options) {
			o.Export = func(_ context.Context, id p.ConversationID, dir, file string) (string, error) {
				return dir + "/" + string(id[:2]) + file, fails
			}
		})
		d.say("/export", "enter")
		d.sees("there is no conversation yet")
		answered(d, "one", "first answer")
		d.say("/export talk.html", "enter")
		d.wait(time.Second)
		d.sees("written to /w/" + string(d.m.conv.ID[:2]) + "talk.html")
		fails = errors.New("talk.html exists: name another file")
		d.say("/export talk.html", "enter")
		d.wait(time.Second)
		d.sees("talk.html exists")
	})
}
