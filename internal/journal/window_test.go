package journal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// instant is a backend that makes everything durable at once.
type instant struct{ *Log }

func (b instant) Appended()               { b.Commit(b.last) }
func (b instant) Wrote(before, after int) {}
func (b instant) Old(_ context.Context, after, upTo uint64, limit int) ([]Record, error) {
	return []Record{{Seq: after + 1}}, nil
}

// However long a conversation is, memory holds its last few records.
func TestWindowDoesNotGrow(t *testing.T) {
	const window = 64 << 10
	l := NewLog(LogOptions{Window: window})
	l.SetBackend(instant{l})
	body := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	for range 40 {
		var last uint64
		for range 100 {
			last = l.Append(Entry{Kind: "k", Body: body})
		}
		size := 0
		for _, e := range l.recent.entries {
			size += e.size()
		}
		if l.recent.bytes != size || size > window || size < window/2 && last > 100 {
			t.Fatalf("window has %d bytes, says %d, want at most %d", size, l.recent.bytes, window)
		}
		if c := cap(l.recent.entries); c > 1000 {
			t.Fatalf("window has room for %d entries", c)
		}
	}
	if recs, err := l.Read(t.Context(), 0, 5000); len(recs) != 4000 || err != nil {
		t.Errorf("Read gives %d records, %v", len(recs), err)
	}
}
