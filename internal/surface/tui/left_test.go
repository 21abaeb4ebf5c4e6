package tui

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A tidyEngine notes what is released.
type tidyEngine struct {
	*enginetest.Engine
	released *[]p.ConversationID
}

func (e tidyEngine) Release(ctx context.Context, id p.ConversationID) error {
	*e.released = append(*e.released, id)
	return e.Engine.Release(ctx, id)
}

// Others can open a conversation that was left, and so can we.
func TestConversationIsLetGo(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		var released []p.ConversationID
		other := conversationOf(e, 1)
		e.Must(other, p.Rename{Title: "the other one"})
		d := drive(t, e, func(o *Options) { o.Engine = tidyEngine{e, &released} })
		answered(d, "one", "yes")
		first := d.m.conv.ID
		d.say("/new", "enter")
		d.wait(time.Second)
		if len(released) != 1 || released[0] != first {
			t.Fatalf("it released %v, not of %s", released, first)
		}
		answered(d, "two", "no")
		d.say("/resume", "enter")
		d.wait(time.Second)
		d.say("other", "enter")
		d.wait(time.Second)
		d.say("/resume", "enter")
		d.wait(time.Second)
		d.say("other", "enter") // the one that is on the screen
		d.wait(time.Second)
		if len(released) != 2 || d.m.conv.ID != other {
			t.Fatalf("it released %v and shows %s", released, d.m.conv.ID)
		}
		answered(d, "three", "still there")
	})
}

// A deafEngine takes long to open one conversation, and cannot be hurried.
type deafEngine struct {
	tidyEngine
	slow p.ConversationID
}

func (e deafEngine) Resume(ctx context.Context, id p.ConversationID) (engine.Snapshot, error) {
	if id == e.slow {
		<-time.After(3 * time.Second)
		ctx = context.WithoutCancel(ctx)
	}
	return e.Engine.Resume(ctx, id)
}

// Who chooses another conversation while one is being opened gets that; what is
// opened for nothing is released.
func TestSecondChoice(t *testing.T) {
	const slow, other = 0, 1
	for name, tt := range map[string]struct {
		keys  []string
		shows int  // slow, other or neither
		kept  bool // because commands run in it
		lets  bool // the slow one is released
	}{
		"another":          {keys: []string{"esc", "b", "enter"}, shows: other, lets: true},
		"the same":         {keys: []string{"enter"}, shows: slow},
		"none":             {keys: []string{"esc", "esc"}, shows: -1, lets: true},
		"none, it is kept": {keys: []string{"esc", "esc"}, shows: -1, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *enginetest.Engine) {
				var released []p.ConversationID
				ids := []p.ConversationID{conversationOf(e, 1), conversationOf(e, 1)}
				e.Must(ids[slow], p.Rename{Title: "aaa"})
				e.Must(ids[other], p.Rename{Title: "bbb"})
				d := drive(t, e, func(o *Options) { o.Engine, o.Pick = deafEngine{tidyEngine{e, &released}, ids[slow]}, true })
				if tt.kept {
					d.m.LeftOpen = ids[:1]
				}
				d.wait(time.Second)
				d.press("a", "a", "a", "enter")
				d.sees("opening…")
				d.wait(time.Second)
				d.press(tt.keys...)
				d.wait(6 * time.Second)
				d.sees("ready")
				if got := slices.Index(ids, d.m.conv.ID); got != tt.shows {
					t.Errorf("it shows %d, not %d", got, tt.shows)
				}
				if lets := slices.Equal(released, ids[:1]); lets != tt.lets || !lets && len(released) > 0 {
					t.Errorf("of %v it released %v", ids, released)
				}
			})
		})
	}
}

// An approval can wait while its person does something else.
func TestApprovalWaits(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		first := d.m.conv.ID
		d.sees("you can answer later")
		d.press("/")
		d.seesNot("you can answer later")
		d.press("esc")
		d.wait(time.Second)
		d.sees("you can answer later", "waiting for your answer")
		d.wait(time.Second)
		d.say("/status", "enter")
		d.sees("fermata resume")
		d.press("esc")
		d.wait(time.Second)
		d.say("/fork", "enter")
		d.sees("not while a turn runs")
		d.wait(time.Second)
		d.say("/new", "enter")
		d.wait(time.Second)
		answered(d, "something else", "fine")
		d.say("/resume", "enter")
		d.wait(time.Second)
		d.say("do it", "enter")
		d.wait(time.Second)
		d.sees("rm x", "waiting for your answer")
		if d.m.conv.ID != first {
			t.Fatal("not the one that waits")
		}
		d.answer("y")
		run := e.Run()
		if run.Call.Grant != p.Approved {
			t.Errorf("it was granted %q", run.Call.Grant)
		}
		run.Finish("done")
		e.Request().Answer("I did")
		d.wait(time.Second)
		d.sees("I did", "ready")
	})
}

// When what waited is stopped, what is typed after the slash is a text like any other.
func TestStopWhileAnApprovalIsAside(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		d.press("/", "n", "ctrl+c")
		d.wait(time.Second)
		d.sees("interrupted after", "ready")
		d.press("esc", "esc")
		if got := d.m.comp.Text(); got != "/n" {
			t.Errorf("the composer holds %q", got)
		}
	})
}

// In the words to the model a slash is a letter.
func TestSlashInTheWordsOfADenial(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		d.answer("n")
		d.press("/", "t", "m", "p")
		d.sees("› /tmp")
		d.press("enter")
		e.Request().Answer("well then")
	})
}

// A conversation in which commands run is kept, and whoever quits is asked about them.
func TestQuitWithCommandsElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		var released []p.ConversationID
		d := drive(t, e, func(o *Options) { o.Engine = tidyEngine{e, &released} })
		d.say("serve", "enter")
		r := e.Request()
		r.Call("c1", "work", "{}")
		r.End()
		run := e.Run()
		job := e.Job()
		if err := run.Keep(job, `"p1"`); err != nil {
			t.Fatal(err)
		}
		run.Finish("it runs on")
		e.Request().Answer("it serves")
		d.wait(time.Second)
		d.sees("1 in background")
		d.say("/new", "enter")
		d.wait(time.Second)
		d.sees("1 background command keeps running")
		if len(released) > 0 {
			t.Fatal("it was released")
		}
		d.press("ctrl+d")
		d.wait(time.Second)
		d.sees("1 background command still running", "1  serve")
		d.press("n")
		if d.over {
			t.Fatal("it has quit")
		}
		job.Exit(0)
		d.wait(time.Second)
		d.press("ctrl+d")
		d.wait(time.Second)
		if !d.over {
			t.Error("it asks about what has ended")
		}
	})
}
