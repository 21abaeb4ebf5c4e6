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
			s.types("a thought", "Left")
			s.sees("› a thought")
			eventually(t, "the draft is kept", func() bool {
				files, _ := filepath.Glob(filepath.Join(pl.dir, "home", "fermata", "drafts", "*.txt"))
				text := []byte{}
				if len(files) == 1 {
					text, _ = os.ReadFile(files[0]) // not yet
				}
				return string(text) == "a thought"
			})
			it, _ := readRow(s.fermata())
			end(s)
			eventually(t, "its number is free", func() bool { return syscall.Kill(it.pid, 0) != nil }) // until then the draft counts as its own
			again := newScreenAgain(s, pl.demo())
			again.sees("› a thought")
			again.keys("Enter")
			again.sees("I understand")
		})
	}
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
