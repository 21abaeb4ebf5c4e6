package file

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/longtest"
)

// A kind is found wherever its letters stand, also across two pieces that are
// read, and not in a text that talks of it.
func TestHas(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	far := longtest.Default(40, 18) // more than what is looked for is long
	for shift := -far; shift <= far; shift++ {
		text := append(bytes.Repeat([]byte(" "), readBytes+shift), `"kind":"renamed"`...)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OS{}.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		v := &fileView{file: f}
		if ok, err := v.has("renamed"); !ok || err != nil {
			t.Errorf("at %d: not found, %v", readBytes+shift, err)
		}
		if ok, err := v.has("rename"); ok || err != nil {
			t.Errorf("another kind is found, %v", err)
		}
		v.Close()
	}
}

func TestHasNot(t *testing.T) {
	s := New(t.TempDir(), Options{})
	j, err := s.Create(t.Context(), "0190a000-0000-7000-8000-000000000000", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	j.Append(journal.Entry{Kind: "message", Body: []byte(`{"text":"\"kind\":\"renamed\""}`)})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := s.View(t.Context(), "0190a000-0000-7000-8000-000000000000")
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, ok, err := v.Last(t.Context(), "renamed"); ok || err != nil {
		t.Errorf("found in a text, %v", err)
	}
}
