package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

// What is left of a conversation whose creator was killed before its first event was recorded is no damage. One that
// had events, or that may have had some, is.
func TestNeverBegunIsNoDamage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		text   string // in its file
		later  time.Duration
		begun  bool
		owned  bool
		faults int
	}{
		{name: "nothing"},
		{name: "a part of the first event", text: `{"n":1,"t":"2026-`},
		{name: "about to begin", owned: true, begun: true},
		{name: "emptied later", later: time.Hour, begun: true, faults: 1},
		{name: "a damaged event", text: `{"n":1,"t":"2026-` + "\n", begun: true, faults: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := t.TempDir()
			store := file.New(home, file.Options{})
			id := p.NewConversationID(time.Now())
			j, err := store.Create(t.Context(), string(id), id.Time())
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if !tc.owned {
				j.Close()
			}
			files, _ := filepath.Glob(filepath.Join(home, "conversations/*/*/*/*.jsonl"))
			at := id.Time().Add(tc.later)
			if err := os.WriteFile(files[0], []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(files[0], at, at); err != nil {
				t.Fatal(err)
			}
			e := enginetest.New(t, enginetest.Options{Store: store})
			r, err := e.Check(t.Context(), id)
			if err != nil || r.NeverBegun == tc.begun || len(r.Problems) != tc.faults {
				t.Errorf("Check = %+v, %v", r, err)
			}
		})
	}
}
