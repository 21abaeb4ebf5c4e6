package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What was written and not sent is there again, however the program ended.
func TestScreenDraftSurvives(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*screen){
		"kill -9": func(s *screen) { s.signal(syscall.SIGKILL) },
		"SIGHUP":  func(s *screen) { s.signal(syscall.SIGHUP) },
		"quit":    func(s *screen) { s.signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			pl := screenPlace(t)
			s := newScreen(t, pl, pl.demo()+"; exec sleep 600")
			s.sees("ready")
			s.drafts("a thought")
			it, _ := readRow(s.fermata())
			end(s)
			eventually(t, "it has ended", func() bool { return hasEnded(it) }) // until then the draft is its own
			again := newScreenAgain(s, pl.demo())
			again.sees("› a thought")
			again.keys("Enter")
			again.sees("I understand")
		})
	}
}

// drafts writes a text and waits until it is kept.
func (s *screen) drafts(text string) {
	s.t.Helper()
	s.types(text, "Left")
	s.sees("› " + text)
	eventually(s.t, "the draft is kept", func() bool {
		files, _ := filepath.Glob(filepath.Join(s.pl.dir, "home", "fermata", "drafts", "*.txt"))
		kept := []byte{}
		if len(files) == 1 {
			kept, _ = os.ReadFile(files[0]) // not yet
		}
		return string(kept) == text
	})
}

// Keys do what the screen says of them.
func TestScreenKeysDoWhatTheScreenSays(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	s := newScreen(t, pl, pl.demo("'run: seq 60; sleep 600'"))
	s.sees("lines above", "working")
	s.keys("C-o") // all of it
	s.sees("  50")
	s.types("draft", "PageUp")
	s.sees("Esc or End goes there")
	s.keys("Escape")
	s.gone("more lines below")
	s.sees("working", "› draft")
	s.keys("PageUp")
	s.sees("more lines below")
	s.keys("End")
	s.gone("more lines below")
	s.sees("working")
	s.keys("C-c")
	s.sees("interrupted after", "› draft", "ready")
	s.keys("C-c")
	s.gone("› draft")
	s.keys("Up")
	s.sees("› draft")
}
