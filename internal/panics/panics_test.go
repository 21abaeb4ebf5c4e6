package panics_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/panics"
)

func TestPanicIsAnErrorWithATraceInTheFile(t *testing.T) {
	home := t.TempDir()
	log := panics.ToFile(home)
	var own *panics.Error
	if err := log.Run(func() { brokenFunction(nil) }); !errors.As(err, &own) || !strings.Contains(err.Error(), "internal error: runtime error: invalid memory") {
		t.Errorf("got %v", err)
	}
	if err := log.Run(func() {}); err != nil {
		t.Errorf("without a panic: %v", err)
	}
	if err := panics.Log(nil).Run(func() { panic("no log") }); err == nil || err.Error() != "internal error: no log" {
		t.Errorf("without a log: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(home, panics.File))
	if err != nil || strings.Count(string(text), "invalid memory") != 1 || !strings.Contains(string(text), "brokenFunction") {
		t.Errorf("%v: the file says %s", err, text)
	}
}

//go:noinline
func brokenFunction(p *int) { *p = 1 }

// A defect that shows over and over does not fill the disk.
func TestFileIsBounded(t *testing.T) {
	home := t.TempDir()
	log := panics.ToFile(home)
	for range 6 {
		log("x", bytes.Repeat([]byte("s"), 1<<20))
	}
	log("last", nil)
	text, err := os.ReadFile(filepath.Join(home, panics.File))
	if err != nil || len(text) > 5<<20 || !strings.Contains(string(text), "last") {
		t.Errorf("%v: %d bytes", err, len(text))
	}
}
