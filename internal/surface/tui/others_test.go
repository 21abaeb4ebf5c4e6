package tui

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/app/imports"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/foreign"
	p "github.com/fermata-agent/fermata/protocol"
)

// fakeOthers has two conversations, of which one cannot be imported.
type fakeOthers struct {
	id       p.ConversationID
	listed   int
	dir      string
	imported []string
}

func (f *fakeOthers) List(_ context.Context, dir string) ([]imports.Found, []string, error) {
	f.listed++
	f.dir = dir
	return []imports.Found{
		{Session: foreign.Session{Agent: foreign.Claude, ID: "s1", Title: "mend\x1b[2J the roof", Modified: time.Now()}, State: imports.New},
		{Session: foreign.Session{Agent: foreign.Codex, ID: "s1", Title: "paint it", Modified: time.Now()}, State: imports.Same},
	}, []string{"opencode: no database"}, nil
}

func (f *fakeOthers) Import(_ context.Context, s foreign.Session) (p.ConversationID, error) {
	f.imported = append(f.imported, string(s.Agent)+" "+s.ID)
	if s.Agent == foreign.Claude {
		return "", errors.New("it cannot be read")
	}
	return f.id, nil
}

// A key in the list of conversations leads to those of other agents, at which nothing looks before. The one that is chosen is imported and opened.
func TestConversationsOfOtherAgents(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		others := &fakeOthers{id: conversationOf(e, 1)}
		d := drive(t, e, func(o *Options) { o.Others, o.Pick = others, true })
		d.wait(time.Second)
		d.sees("Conversations", "tab other agents", "question 1.")
		if others.listed != 0 {
			t.Error("it was looked for conversations before the key")
		}
		d.press("tab")
		d.wait(time.Second)
		d.sees("Conversations of other agents in this project", "Claude Code", "mend the roof", "Codex", "paint it", "imported", "opencode: no database", "tab own conversations")
		if others.dir != d.m.Settings().Cwd {
			t.Errorf("it was looked in %q", others.dir)
		}
		d.press("tab")
		d.wait(time.Second)
		d.sees("tab other agents", "question 1.")
		d.press("tab")
		d.wait(time.Second)
		d.press("enter")
		d.wait(time.Second)
		d.sees("not imported: it cannot be read")
		d.press("down", "enter")
		d.wait(time.Second)
		d.sees("answer 1.")
		if got := others.imported; len(got) != 2 || got[0] != "claude s1" || got[1] != "codex s1" || d.m.conv.ID != others.id {
			t.Errorf("imported %q, opened %s", got, d.m.conv.ID)
		}
	})
}

// Without other agents there is no such key.
func TestNoOtherAgents(t *testing.T) {
	bubble(t, func(t *testing.T, e *enginetest.Engine) {
		conversationOf(e, 1)
		d := drive(t, e, func(o *Options) { o.Pick = true })
		d.wait(time.Second)
		d.seesNot("other agents")
		d.press("tab")
		d.sees("question 1.")
	})
}
