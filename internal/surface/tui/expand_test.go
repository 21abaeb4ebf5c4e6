package tui

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/surface/tui/composer"
	p "github.com/fermata-agent/fermata/protocol"
)

// What a message names is attached when it is sent and does not show on the screen. A message whose
// attachment cannot be had is not sent, and the text is back.
func TestAttachments(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		expand := func(o *Options) {
			o.Prompt = "see @docs:x"
			o.Expand = func(_ context.Context, content []p.Content) ([]p.Content, error) {
				return append(content, p.Content{Type: p.ContentText, Text: "the whole text", Attached: "@docs:x"}), nil
			}
		}
		d := drive(t, e, expand)
		r := e.Request()
		last := r.Prompt.Items[len(r.Prompt.Items)-1]
		if len(last.Content) != 2 || last.Content[1].Text != "the whole text" {
			t.Errorf("the model is sent %v", last.Content)
		}
		r.Answer("done")
		d.wait(time.Second)
		d.sees("see @docs:x", "done")
		d.seesNot("the whole text")

		d = drive(t, e, expand, func(o *Options) {
			o.Expand = func(context.Context, []p.Content) ([]p.Content, error) { return nil, errors.New("no such thing") }
		})
		d.wait(time.Second)
		d.sees("no such thing")
		if d.m.comp.Text() != "see @docs:x" || d.m.conv.ID != "" {
			t.Errorf("the composer holds %q", d.m.comp.Text())
		}
	})
}

// The prompt of an MCP server is a command as soon as it is known, and is written when it is sent.
func TestPromptsOfServers(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		known := false
		d := drive(t, e, func(o *Options) {
			o.MorePrompts = func() []composer.Command {
				if !known {
					return nil
				}
				return []composer.Command{{Name: "docs.ask", Args: "WHAT", Help: "ask the docs"}}
			}
			o.Expand = func(_ context.Context, content []p.Content) ([]p.Content, error) {
				return p.Text("expanded " + content[0].Text), nil
			}
		})
		known = true
		d.press("/", "d", "o", "c", "s", ".", "a")
		d.sees("ask the docs")
		d.press("s", "k", "space", "i", "t", "enter")
		items := e.Request().Prompt.Items
		if got := p.PlainText(items[len(items)-1].Content); got != "expanded /docs.ask it" {
			t.Errorf("the model is sent %q", got)
		}
	})
}
