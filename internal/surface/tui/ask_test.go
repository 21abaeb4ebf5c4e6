package tui

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/client"
	p "github.com/fermata-agent/fermata/protocol"
)

// asked brings the conversation to where a command waits for an answer.
func asked(d *driver, command ...string) {
	d.t.Helper()
	working(d).Ask(command...)
	d.wait(time.Second)
}

// working sends a message, of which a call comes.
func working(d *driver) *enginetest.Run {
	d.t.Helper()
	d.say("do it", "enter")
	r := d.e.Request()
	r.Call("c1", "work", "{}")
	r.End()
	return d.e.Run()
}

func TestApprove(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "-rf", "x")
		d.sees("rm -rf x", "waiting for your answer")
		d.answer("y")
		run := e.Run()
		if run.Call.Grant != p.Approved {
			t.Errorf("it was granted %q", run.Call.Grant)
		}
		run.Finish("done")
		e.Request().Answer("I did")
		d.wait(time.Second)
		d.sees("I did", "ready")
		if d.m.ask.Open != nil {
			t.Error("the dialog is still open")
		}
	})
}

func TestDenyWithAWord(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		d.answer("n")
		d.say("use mv", "enter")
		found := false
		for ev := range e.Read(t.Context(), d.m.conv.ID) {
			b, ok := ev.Body.(*p.ApprovalResolved)
			found = found || ok && b.Decision == p.Denied && b.Message == "use mv"
		}
		if !found {
			t.Error("the words did not arrive")
		}
		e.Request().Answer("then not")
		d.wait(time.Second)
		d.sees("then not", "ready")
	})
}

func TestStopAtAnApproval(t *testing.T) {
	for _, keys := range [][]string{{"s"}, {"esc", "esc"}, {"ctrl+c"}} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e)
			asked(d, "rm", "x")
			for _, k := range keys {
				d.step(press(k))
			}
			if keys[0] == "s" { // Enter says that it is an answer
				d.step(press("enter"))
			}
			d.sees("stopping…")
			d.wait(time.Second)
			d.sees("interrupted after", "ready")
			d.seesNot("answered elsewhere")
			if d.m.ask.Open != nil {
				t.Error("the dialog is still open")
			}
		})
	}
}

// One Esc is not enough: it may have been meant for something else.
func TestOneEscDoesNotStopAtAnApproval(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		d.press("esc")
		d.wait(time.Second)
		d.sees("rm x", "waiting for your answer")
	})
}

func TestApprovalAnsweredElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		e.Must(d.m.conv.ID, p.Approve{Call: d.m.ask.Open.Item.Approval.Call, Decision: p.Approved})
		run := e.Run()
		d.wait(100 * time.Millisecond)
		d.sees("answered elsewhere")
		if d.m.ask.Open != nil {
			t.Error("the dialog is still open")
		}
		run.Finish("done")
		e.Request().Answer("ok")
		d.wait(time.Second)
		d.sees("ok")
	})
}

// Somebody else was quicker: the answer is refused, which is not an error.
func TestSecondAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		e.Must(d.m.conv.ID, p.Approve{Call: d.m.ask.Open.Item.Approval.Call, Decision: p.Approved})
		d.step(press("n")) // what is shown is older than what is
		d.step(press("enter"))
		d.settle()
		e.Run().Finish("done")
		e.Request().Answer("ok")
		d.sees("answered elsewhere")
		d.wait(10 * time.Second)
		d.sees("ok", "ready")
	})
}

// An approval that waits is there again when the conversation is resumed.
func TestApprovalAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		asked(d, "rm", "x")
		id := d.m.conv.ID
		d.press("ctrl+d") // not used by the dialog
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.settle()

		again := enginetest.New(t, enginetest.Options{Store: e.Store})
		d = drive(t, again, resuming(id))
		d.wait(time.Second)
		d.sees("rm x", "waiting for your answer")
		d.answer("y")
		again.Run().Finish("done")
		again.Request().Answer("I did")
		d.wait(time.Second)
		d.sees("I did", "ready")
	})
}

// Whoever types a sentence in front of an approval does not answer it, whatever its first
// letter is, and finds it in the composer.
func TestSentenceAtAnApproval(t *testing.T) {
	for _, text := range []string{"yes please", "also the tests", "not that", "stop it", "just look"} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e)
			asked(d, "rm", "x")
			for _, r := range text {
				d.press(strings.ReplaceAll(string(r), " ", "space"))
				d.wait(200 * time.Millisecond)
			}
			d.wait(time.Second)
			if got := d.m.comp.Text(); got != text || d.m.conv.NextApproval() == nil {
				t.Errorf("the composer holds %q, want %q; answered: %v", got, text, d.m.conv.NextApproval() == nil)
			}
			d.sees("waiting for your answer", "rm x", "y  yes")
		})
	}
}

// Keys that mean the same everywhere take back a letter, too: an interrupt right after it wins.
func TestKeyTakesBackALetter(t *testing.T) {
	for _, key := range []string{"ctrl+c", "ctrl+l"} {
		bubble(t, func(t *testing.T, e *enginetest.Engine) {
			d := drive(t, e)
			asked(d, "rm", "x")
			d.step(press("y"))
			d.step(press(key))
			d.wait(time.Second)
			if it := d.m.conv.Transcript.Items; slices.ContainsFunc(it, d.m.conv.HasAnswered) {
				t.Errorf("%s did not keep the letter from answering", key)
			}
		})
	}
}

// Letters that somebody is typing when the dialog opens do not answer it.
func TestDialogOpensUnderTheHands(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("do it", "enter")
		r := e.Request()
		r.Call("c1", "work", "{}")
		r.End()
		e.Run().Ask("rm", "x")
		d.wait(2 * client.FrameTime)
		d.sees("rm x")
		d.press("y", "e", "s")
		if text := d.m.comp.Text(); text != "yes" || d.m.conv.NextApproval() == nil {
			t.Fatalf("the composer holds %q; answered: %v", text, d.m.conv.NextApproval() == nil)
		}
		d.sees("yes")
		d.wait(time.Second)
		d.answer("y")
		e.Run().Finish("done")
		e.Request().Answer("ok")
		d.wait(time.Second)
		d.sees("ok")
	})
}

func TestSeveralApprovals(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		d.say("do it", "enter")
		r := e.Request()
		r.Call("c1", "work", "{}")
		r.Call("c2", "work", "{}")
		r.End()
		e.Run().Ask("one")
		d.wait(time.Second)
		d.answer("y")
		e.Run().Finish("done")
		e.Run().Ask("two")
		d.wait(time.Second)
		d.sees("two")
		d.answer("a")
		run := e.Run()
		if run.Call.Grant != p.ApprovedForSession {
			t.Errorf("it was granted %q", run.Call.Grant)
		}
		run.Finish("done")
		e.Request().Answer("both")
		d.wait(time.Second)
		d.sees("both", "ready")
	})
}

func TestApprovalOfAPatchShowsTheDiff(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		working(d).Question(p.ApprovalRequested{
			Kind: p.ApprovePatch, Cwd: "/w", Reason: "outside of the workspace",
			Detail: json.RawMessage(`{"/w/a.go":{"update":{"unified_diff":"@@ -1 +1 @@\n-old line\n+new line\n"}}}`),
		})
		d.wait(time.Second)
		d.sees("a.go", "-old line", "+new line", "outside of the workspace")
	})
}

// A long diff gets the whole screen, unless somebody is writing.
func TestApprovalOfALongPatch(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		d := drive(t, e)
		working(d).Question(p.ApprovalRequested{
			Kind: p.ApprovePatch, Cwd: "/w",
			Detail: json.RawMessage(`{"/w/a.go":{"add":{"content":"` + strings.Repeat(`line\n`, 90) + `"}}}`),
		})
		d.wait(time.Second)
		d.sees("1–14 of 94", "yes, for this session")
		d.press("end")
		d.sees("81–94 of 94")
		d.press("home", "pgdown", "pgdown")
		d.sees("29–42 of 94")
		d.m.comp.SetText("half a word")
		d.sees("half a word", "of 94", "waiting for your approval")
	})
}
