package journal_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

func entryAt(kind string, at time.Time) journal.Entry {
	return journal.Entry{Turn: 1, Kind: kind, Body: json.RawMessage(`{"k":"` + kind + `"}`), Time: at}
}

// A copy has the same records, times, open text and place among the archived; an
// unfinished one is completed, and one that differs is reported.
func TestCopy(t *testing.T) {
	from, to := journal.NewMemoryStore(journal.MemoryOptions{}), file.New(t.TempDir(), file.Options{})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	j, err := from.Create(t.Context(), "x", at)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		j.Append(entryAt("a", at.Add(time.Duration(i)*time.Second)))
	}
	j.Open("s").Write("1.1.0", "message", "half a sent")
	in := journal.Info{ID: "x", Archived: true, Modified: at}
	if _, err := journal.Copy(t.Context(), from, to, in); !errors.As(err, new(*journal.LockedError)) {
		t.Errorf("copied what is open: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	half, err := to.Create(t.Context(), "x", at)
	if err != nil {
		t.Fatal(err)
	}
	half.Append(entryAt("a", at))
	if err := half.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := journal.Copy(t.Context(), from, to, in); n != 600 || err != nil {
			t.Fatalf("%d records, %v", n, err)
		}
	}
	if info, err := to.Stat(t.Context(), "x"); err != nil || !info.Archived {
		t.Errorf("%+v, %v", info, err)
	}
	other, err := from.Create(t.Context(), "y", at)
	if err != nil {
		t.Fatal(err)
	}
	other.Append(entryAt("b", at))
	other.Close()
	there, err := to.Create(t.Context(), "y", at)
	if err != nil {
		t.Fatal(err)
	}
	there.Append(entryAt("c", at))
	there.Close()
	if _, err := journal.Copy(t.Context(), from, to, journal.Info{ID: "y"}); err == nil {
		t.Error("another conversation of the same name was taken for the copy")
	}
}
