package tui

import (
	"context"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// Esc twice picks a message; the conversation is reverted to before it, the message is
// in the composer, and the old branch stays.
func TestRewind(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		var undone []p.TurnID
		d := drive(t, e, func(o *Options) {
			o.Undo = func(_ context.Context, _ p.ConversationID, turn p.TurnID) (*app.Undo, error) {
				return &app.Undo{Turn: turn, Files: 1, Diff: "-new\n+old\n", Do: func(context.Context) error {
					undone = append(undone, turn)
					return nil
				}}, nil
			}
		})
		answered(d, "first", "yes")
		answered(d, "second", "yes")
		answered(d, "third", "yes")
		d.m.conv.Transcript.Changes = []*transcript.TurnChanges{{Turn: 1, Patches: []p.Seq{1}}, {Turn: 2, Patches: []p.Seq{2}}, {Turn: 3, Patches: []p.Seq{3}}}
		d.press("esc")
		d.sees("Esc again edits an earlier message")
		d.press("esc")
		d.sees("Edit which message?", "first", "third")
		d.press("down", "enter")
		d.sees("Go back to before turn 2?", "+old", "revert the conversation and the files")
		d.press("b")
		d.wait(time.Second)
		d.sees("reverted: ", "› second")
		if len(undone) != 2 || undone[0] != 3 || undone[1] != 2 {
			t.Errorf("files of %v were put back", undone)
		}
		if page, err := e.List(t.Context(), listAll); err != nil || len(page.Items) != 2 {
			t.Errorf("%d conversations, %v: the old branch is not kept", len(page.Items), err)
		}
		d.say("!", "enter")
		r := e.Request()
		if in := r.Inputs(); len(in) == 0 || in[len(in)-1] != "user second!" {
			t.Errorf("the model was sent %q", in)
		}
		r.Answer("ok")
		d.wait(time.Second)
	})
}
