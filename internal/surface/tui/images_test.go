package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// Messages with images carry them; one that cannot be read is not sent, and
// the text is back.
func TestImages(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		good := func(o *Options) {
			o.Prompt, o.Images = "look", []string{"a.png"}
			o.Image = readImage
		}
		d := drive(t, e, good)
		r := e.Request()
		last := r.Prompt.Items[len(r.Prompt.Items)-1]
		if len(last.Content) != 2 || last.Content[1].ImageURL != "data:a.png" {
			t.Errorf("the model is sent %v", last.Content)
		}
		r.Answer("a cat")
		d.wait(time.Second)
		d.sees("a cat")

		d = drive(t, e, good, func(o *Options) {
			o.Image = func(string) (p.Content, error) { return p.Content{}, errors.New("not an image") }
		})
		d.wait(time.Second)
		d.sees("not an image")
		if d.m.comp.Text() != "look [image #1 a.png]" || d.m.conv.ID != "" {
			t.Errorf("the composer holds %q", d.m.comp.Text())
		}
	})
}

// readImage is Options.Image.
func readImage(file string) (p.Content, error) {
	return p.Content{Type: p.ContentImage, ImageURL: "data:" + file}, nil
}

// pictures are the images of the last message that a model is sent.
func pictures(r *enginetest.Request) string {
	var urls []string
	for _, c := range r.Prompt.Items[len(r.Prompt.Items)-1].Content {
		if c.Type == p.ContentImage {
			urls = append(urls, c.ImageURL)
		}
	}
	return strings.Join(urls, " ")
}

// What is returned still has its images, also by a conversation that is opened by
// another program than the one that sent them; and so has what is written meanwhile.
func TestImagesAreHandedBack(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		images := func(o *Options) { o.Image = readImage }
		d := drive(t, e, images)
		d.say("hello", "enter")
		r := e.Request()
		d.send(tea.PasteMsg{Content: "/a/one.png"})
		d.press("tab")
		d.wait(time.Second)
		d.send(tea.PasteMsg{Content: "/a/two.png"})
		d.press("esc")
		r.Stopped()
		d.wait(time.Second)
		d.sees("[image #1 one.png]", "[image #2 two.png]")
		d.press("enter")
		r = e.Request()
		if got := pictures(r); got != "data:/a/one.png data:/a/two.png" {
			t.Errorf("after a stop the model is sent %q", got)
		}

		d.send(tea.PasteMsg{Content: "/a/three.png"})
		d.press("tab")
		d.wait(time.Second)
		e.Must(d.m.conv.ID, p.UserTurn{WhenBusy: p.Queue, Content: append(p.Text("by somebody else"), p.Content{Type: p.ContentImage, ImageURL: "https://x/four"})})
		e.Kill()
		again := enginetest.New(t, enginetest.Options{Store: e.Store})
		d = drive(t, again, resuming(d.m.conv.ID), images)
		d.wait(time.Second)
		d.sees("[image #3 three.png]", "by somebody else [image #4]")
		d.send(tea.PasteMsg{Content: "/b/three.png"})
		d.press("enter")
		if got := pictures(again.Request()); got != "data:/a/three.png https://x/four data:/b/three.png" {
			t.Errorf("after a crash the model is sent %q", got)
		}
	})
}

// Ctrl-V attaches the image in the clipboard, or says why it cannot.
func TestImageFromTheClipboard(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		fails := errors.New("there is no image in the clipboard")
		d := drive(t, e, func(o *Options) {
			o.ClipboardImage = func(context.Context) (string, error) { return "/tmp/x.png", fails }
		})
		d.say("look", "ctrl+v")
		d.sees("there is no image in the clipboard")
		fails = nil
		d.press("ctrl+v")
		d.sees("look[", "x.png")
	})
}
