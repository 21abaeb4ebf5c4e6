package composer

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
)

// maxPast bounds the entries that are kept in memory.
const maxPast = 10_000

// past is what was sent before, and where in it the person is.
type past struct {
	entries []string // the oldest first
	back    int      // how far back the text shown is; 0 is the draft
	draft   string   // what was written before going back, with its folds
	fresh   bool     // the text is as it was brought back: Up and Down go on
}

// leave says that the text is the person's own now.
func (h *past) leave() { h.back, h.fresh = 0, false }

// Answers to commands of ours. Each knows whose it is, so that two composers
// can be given each other's messages.
type (
	loaded struct {
		to      *Composer
		entries []string
		err     error
	}
	added struct {
		to  *Composer
		err error
	}
)

func (c *Composer) load() tea.Cmd {
	h := c.opts.History
	if h == nil {
		return nil
	}
	return func() tea.Msg {
		entries, err := h.Load()
		return loaded{c, entries, err}
	}
}

// AddToHistory adds a message that was not written in a composer. A failure is a message for the composer.
func AddToHistory(h History, text string) tea.Cmd {
	if h == nil {
		return nil
	}
	return func() tea.Msg {
		if err := h.Add(text); err != nil {
			return added{err: err}
		}
		return nil
	}
}

// loaded puts what the file held before what was sent meanwhile.
func (c *Composer) loaded(msg loaded) Action {
	entries := msg.entries[max(len(msg.entries)-maxPast, 0):]
	c.past.entries = append(entries[:len(entries):len(entries)], c.past.entries...)
	if msg.err != nil {
		return Failed{fmt.Errorf("load the history: %w", msg.err)}
	}
	return Used{}
}

// remember adds a text to the history, unless it was the last one, too.
func (c *Composer) remember(text string) tea.Cmd {
	c.past.leave()
	c.past.draft = ""
	if n := len(c.past.entries); n > 0 && c.past.entries[n-1] == text {
		return nil
	}
	c.past.entries = append(c.past.entries, text)
	if n := len(c.past.entries); n > maxPast+100 {
		c.past.entries = append([]string(nil), c.past.entries[n-maxPast:]...)
	}
	h := c.opts.History
	if h == nil {
		return nil
	}
	return func() tea.Msg {
		if err := h.Add(text); err != nil {
			return added{c, fmt.Errorf("add to the history: %w", err)}
		}
		return added{c, nil}
	}
}

// up moves up, or back in the history from the first row.
func (c *Composer) up() (Action, tea.Cmd) {
	if !c.past.fresh && c.buf.Up() {
		return Used{}, c.refresh(false)
	}
	return c.recall(1), c.refresh(false)
}

// down moves down, or forth in the history from the last row.
func (c *Composer) down() (Action, tea.Cmd) {
	if !c.past.fresh && c.buf.Down() {
		return Used{}, c.refresh(false)
	}
	return c.recall(-1), c.refresh(false)
}

// recall shows the next entry in a direction that differs from what is shown.
func (c *Composer) recall(step int) Action {
	h := &c.past
	shown := c.Lasting()
	for back := h.back + step; back >= 0 && back <= len(h.entries); back += step {
		text := h.draft
		if back > 0 {
			text = h.entries[len(h.entries)-back]
			if text == shown {
				continue
			}
			text = c.buf.Refold(text)
		}
		if h.back == 0 {
			h.draft = c.buf.Text()
		}
		h.back, h.fresh = back, back > 0
		c.buf.SetText(text)
		return Used{}
	}
	if c.buf.Empty() {
		return nil // nothing came of it: the key is free
	}
	return Used{}
}

// search is an incremental search in the history. The text that was found is
// only shown; it becomes the composer's when it is taken.
type search struct {
	entries []string
	query   string
	at      int   // the entry shown, -1 for none
	matches []int // entries that contain the query, the newest first
	nth     int   // of matches
	found   edit.Buffer
}

func (c *Composer) startSearch() (Action, tea.Cmd) {
	c.closePopup()
	c.search = &search{entries: c.past.entries, at: -1}
	return Used{}, nil
}

// add makes the query longer.
func (s *search) add(text string) { s.set(s.query + text) }

func (s *search) set(query string) {
	s.query, s.matches, s.nth = query, nil, 0
	if query == "" {
		s.show()
		return
	}
	seen := map[string]bool{}
	fold := strings.ToLower(query) == query // capitals are meant
	for i := len(s.entries) - 1; i >= 0; i-- {
		text := s.entries[i]
		if fold {
			text = strings.ToLower(text)
		}
		if strings.Contains(text, query) && !seen[s.entries[i]] {
			seen[s.entries[i]] = true
			s.matches = append(s.matches, i)
		}
	}
	s.show()
}

// show puts the match into view, with the cursor where the query is in it.
func (s *search) show() {
	if len(s.matches) == 0 {
		s.at = -1
		s.found.Reset()
		return
	}
	s.at = s.matches[s.nth]
	text := edit.Clean(s.entries[s.at])
	s.found.Reset()
	s.found.SetText(text)
	if i := strings.Index(strings.ToLower(text), strings.ToLower(s.query)); i >= 0 {
		i = min(i, len(text)) // lower case may be longer
		line := strings.Count(text[:i], "\n")
		s.found.SetCursor(edit.Pos{Line: line, Off: i - strings.LastIndexByte(text[:i], '\n') - 1})
	}
}

func (s *search) step(n int) {
	if to := s.nth + n; to >= 0 && to < len(s.matches) {
		s.nth = to
		s.show()
	}
}

// searchKey takes the keys of a search. It reports false for a key that ends it
// and is meant for the text.
func (c *Composer) searchKey(name string, k tea.KeyPressMsg) bool {
	s := c.search
	switch name {
	case "ctrl+r", "up", "ctrl+p":
		s.step(1)
	case "ctrl+s", "down", "ctrl+n":
		s.step(-1)
	case "enter", "tab":
		c.takeMatch()
	case "esc", "ctrl+g":
		c.search = nil
	case "backspace", "ctrl+h":
		if r := []rune(s.query); len(r) > 0 {
			s.set(string(r[:len(r)-1]))
		}
	case "ctrl+u", "ctrl+w":
		s.set("")
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		s.add(edit.Clean(k.Text))
	}
	return true
}

// takeMatch ends the search with what it found, if it found anything.
func (c *Composer) takeMatch() {
	s := c.search
	c.search = nil
	if s.at < 0 {
		return
	}
	c.SetText(s.entries[s.at]) // with the cursor at its end
}
