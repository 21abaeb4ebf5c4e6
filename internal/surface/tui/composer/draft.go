package composer

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A DraftStore keeps what was written and not sent, for each conversation; an empty id
// stands for the one that has not begun. An empty text removes a draft. Both are
// called from commands, one at a time.
type DraftStore interface {
	Load(id string) (string, error)
	Save(id, text string) error
}

// A DraftHost is the program that shows the composer. Its methods are called from Update only.
type DraftHost interface {
	// Conversation is the one on the screen. Its id is empty before its first message.
	Conversation() (p.ConversationID, *transcript.Transcript)
	// ShowError shows an error, with what to do about it.
	ShowError(error) tea.Cmd
}

// DraftSaveTime is how much writing a crash may cost.
const DraftSaveTime = 200 * time.Millisecond

// A DraftKeeper knows what is saved. Without a store it does nothing.
type DraftKeeper struct {
	Store   DraftStore // nil: nothing is saved
	of      p.ConversationID
	text    string
	pending bool // it is about to be saved
	failed  bool // and the error was shown
}

// DraftDue is sent when what is written is to be saved.
type DraftDue struct{}

// isSaved reports whether a text of a conversation is saved.
func (k *DraftKeeper) isSaved(of p.ConversationID, text string) bool {
	return k.of == of && k.text == text
}

// Pending reports whether there is no need to call Changed: the text is about to be saved, or is not kept at all.
func (k *DraftKeeper) Pending() bool { return k.Store == nil || k.pending }

// Changed says what is written now. It is saved a moment after: see Due.
func (k *DraftKeeper) Changed(of p.ConversationID, text string) tea.Cmd {
	if k.Pending() || k.isSaved(of, text) {
		return nil
	}
	k.pending = true
	return tea.Tick(DraftSaveTime, func(time.Time) tea.Msg { return DraftDue{} })
}

// Save is the command that saves what is written, and nil if it is saved.
func (k *DraftKeeper) Save(h DraftHost, of p.ConversationID, text string) tea.Cmd {
	if k.Store == nil || k.isSaved(of, text) {
		k.pending = false
		return nil
	}
	store, before := k.Store, *k
	k.of, k.text = of, text
	return terminal.Do(func() func() tea.Cmd {
		err := store.Save(string(of), text)
		if before.of != of && before.text != "" && err == nil { // it has come along
			err = store.Save(string(before.of), "")
		}
		return func() tea.Cmd {
			k.pending = false
			if err != nil && !k.failed {
				k.failed = true
				return h.ShowError(err)
			}
			return nil
		}
	})
}

// SaveThen is Save that calls then, in Update, when the text is saved. It does not if texts cannot be saved.
func (k *DraftKeeper) SaveThen(h DraftHost, of p.ConversationID, text string, then func() tea.Cmd) tea.Cmd {
	save := k.Save(h, of, text)
	if save == nil {
		return then()
	}
	return terminal.Do(func() func() tea.Cmd {
		saved, _ := save().(terminal.Done)
		return func() tea.Cmd {
			if cmd := saved.Then(); k.failed {
				return cmd
			}
			return then()
		}
	})
}

// Load is the command that loads what was written in the conversation on the screen. restore puts it into the composer.
func (k *DraftKeeper) Load(h DraftHost, restore func(text string)) tea.Cmd {
	if k.Store == nil {
		return nil
	}
	id, _ := h.Conversation()
	return terminal.Do(func() func() tea.Cmd {
		text, err := k.Store.Load(string(id))
		return func() tea.Cmd {
			if err != nil {
				return h.ShowError(err)
			}
			if now, _ := h.Conversation(); text != "" && now == id {
				restore(text)
				k.of, k.text = id, text
			}
			return nil
		}
	})
}
