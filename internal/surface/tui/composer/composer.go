// Package composer is the box in which a person writes: an editor of several
// lines with history, search, completion of commands and file names, and pastes
// that are folded while they are edited and whole when they are sent.
//
// A [Composer] does no I/O by itself. The history's file and the names of files
// come through small interfaces, and are touched only inside a tea.Cmd. Everything
// else happens in Update, which says by its Action what the person wants. Start
// reading at Update in keys.go; the editor itself is package edit.
//
// [HistoryFile], [DraftFiles] and [FileFinder] are the I/O: they may wait for a
// lock, and are called from a tea.Cmd. A [DraftKeeper] saves what is written and
// not sent, so that the next run has it whatever ends this one. [ReturnedOffers]
// are the messages that were not delivered and stand in the box again.
package composer

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	p "github.com/fermata-agent/fermata/protocol"
)

// History keeps what was sent, across conversations. Load returns the oldest
// entry first. Both are called from a tea.Cmd, so from any goroutine, and
// possibly at the same time.
type History interface {
	Load() ([]string, error)
	Add(entry string) error
}

// Files returns the paths that fit what was typed after an @, the best first.
// It is called from a tea.Cmd; ctx ends when the answer is no longer wanted.
type Files func(ctx context.Context, typed string) []string

// A Command is something that can be typed after a slash.
type Command struct {
	Name   string // without the slash
	Args   string // what may follow, such as "[ID]"; empty if nothing does
	Help   string // one line
	Hidden bool   // works, but is not offered; for other names of a command
}

// Options configure a composer. Each may be left
// out; without History or Files there is just none.
type Options struct {
	Context      context.Context  // ends the search for files; needed with Files
	History      History          // of all conversations
	Files        Files            // that can be named after an @
	Commands     []Command        // that can be typed after a slash
	MoreCommands func() []Command // those that came up since; it does not block; may be nil
	Placeholder  string           // shown while nothing is typed
	Vim          bool             // the keys of vim
}

// An Action is what the person wants of the application. It is nil when the
// composer has no use for a message: then a key is free for the application
// (Esc, Ctrl-C, Page Up and so on).
type Action interface{ isAction() }

type (
	// Used says that the message had its effect inside the composer. An Esc
	// that closed a popup or a search is Used, too.
	Used struct{}

	// Submit is a message to send. The composer is empty afterwards.
	Submit struct {
		Text   string     // with folded pastes written out
		Images []string   // paths of images or their URLs, in the order of their labels in Text
		Mode   p.WhenBusy // what becomes of it while a turn runs
	}

	// Slash is a command of Options.Commands. The composer is empty afterwards.
	Slash struct{ Name, Args string }

	// Unknown is a slash and a word that is no command. The text stays.
	Unknown struct{ Name string }

	// Shell is a line after a first exclamation mark, to be run as a command.
	// The composer is empty afterwards; an application that cannot run it now
	// gives it back with SetText.
	Shell struct{ Line string }

	// Editor asks for the external editor on Text.
	Editor struct{}

	// Failed says that the history could not be read or written. What was typed
	// is still in memory.
	Failed struct{ Err error }
)

func (Used) isAction()    {}
func (Submit) isAction()  {}
func (Slash) isAction()   {}
func (Unknown) isAction() {}
func (Shell) isAction()   {}
func (Editor) isAction()  {}
func (Failed) isAction()  {}

// A Composer is used by one goroutine, the one that runs Update and View.
type Composer struct {
	theme   *theme.Theme
	opts    Options
	buf     edit.Buffer
	busy    bool
	label   string // in the upper edge
	vim     edit.Vim
	focused bool
	images  int // that were ever added
	pastes  int // that were ever folded
	past    past
	search  *search // nil unless Ctrl-R is at work
	popup   popup
}

// New returns an empty composer that has the focus.
func New(t *theme.Theme, o Options) *Composer {
	c := &Composer{theme: t, opts: o, focused: true}
	c.buf.SetWidth(80)
	return c
}

// Text returns what is written, with folded pastes written out and images by
// their labels. SetText makes the same of it again.
func (c *Composer) Text() string {
	return c.buf.Expand(c.buf.Text(), func(f edit.Fold) string {
		if f.Image {
			return f.Label
		}
		return f.Text
	})
}

// Lasting returns what is written for those who do not know the labels of images:
// with their paths.
func (c *Composer) Lasting() string { return c.lasting(c.buf.Text()) }

func (c *Composer) lasting(raw string) string {
	return c.buf.Expand(raw, func(f edit.Fold) string {
		if f.Image && IsURL(f.Text) { // it came from elsewhere, and may be large
			return f.Label
		}
		return f.Text
	})
}

// Empty reports whether nothing is written.
func (c *Composer) Empty() bool { return c.buf.Empty() }

// Recalling reports whether something from the history is shown in place of what was written, which can be gone back to.
func (c *Composer) Recalling() bool { return c.past.back > 0 || c.search != nil }

// SetText replaces what is written; undo brings it back. Pastes that were folded
// and are in text unchanged are folded again, and so are the labels of images:
// a message that was sent and returned is what it was.
func (c *Composer) SetText(text string) {
	c.search = nil
	c.past.leave()
	c.closePopup()
	c.popup.closed = token{}
	c.buf.SetText(c.buf.Refold(text))
}

// Prepend puts texts before what is written, each a paragraph. Those that are blank are left out.
func (c *Composer) Prepend(texts ...string) {
	texts = slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(texts) == 0 {
		return
	}
	if now := c.Text(); strings.TrimSpace(now) != "" {
		texts = append(texts, now)
	}
	c.SetText(strings.Join(texts, paragraph))
}

// Discard takes away what is written. The history keeps it.
func (c *Composer) Discard() tea.Cmd {
	text := strings.TrimRight(c.Lasting(), " \t\n")
	c.search = nil
	if strings.TrimSpace(text) == "" {
		c.SetText("")
		return nil
	}
	return c.sent(text)
}

// Insert writes text at the cursor as if it were typed.
func (c *Composer) Insert(text string) {
	c.past.leave()
	c.closePopup()
	c.buf.Insert(text)
}

// AddImage puts the label of an image at the cursor.
func (c *Composer) AddImage(file string) {
	c.past.leave()
	c.buf.InsertFold(edit.Fold{Label: c.newLabel(file), Text: file, Image: true})
}

// Focus shows the cursor and takes keys.
func (c *Composer) Focus() { c.focused = true }

// Blur hides the cursor; keys are not used until Focus.
func (c *Composer) Blur() {
	c.focused = false
	c.search = nil
	c.closePopup()
}

// SetBusy says whether a turn runs. It decides what Tab and Alt-Enter do, and
// the hints in the box.
func (c *Composer) SetBusy(busy bool) { c.busy = busy }

// SetLabel sets the words in the upper edge of the box, such as a mode that one must not
// overlook.
func (c *Composer) SetLabel(text string) { c.label = text }
