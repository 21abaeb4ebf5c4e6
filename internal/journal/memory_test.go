package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func body(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"i":%d}`, n)) }

func create(t *testing.T, s Store, id string) Journal {
	t.Helper()
	j, err := s.Create(t.Context(), id, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestMemoryIsVisibleAtOnce(t *testing.T) {
	j := create(t, NewMemoryStore(MemoryOptions{}), "a")
	if n := j.Append(Entry{Kind: "x", Body: body(1)}, Entry{Kind: "y", Body: body(2)}); n != 2 {
		t.Errorf("Append = %d, want 2", n)
	}
	if n, err := j.Durable(); n != 2 || err != nil {
		t.Errorf("Durable = %d, %v, want 2", n, err)
	}
}

// A crash keeps what was durable, and of the rest a prefix; over many crashes
// every outcome occurs.
func TestMemoryCrash(t *testing.T) {
	for _, mode := range []CrashMode{CrashKill, CrashPower} {
		lasts, texts := map[uint64]bool{}, map[int]bool{}
		for seed := range uint64(200) {
			synctest.Test(t, func(t *testing.T) {
				s := NewMemoryStore(MemoryOptions{SyncDelay: func() time.Duration { return time.Second }})
				j := create(t, s, "a")
				sc := j.Open("s")
				sc.Write("i", "message", "older ü")
				time.Sleep(progressSafe)
				sc.Write("i", "message", "|äöü")
				j.Append(Entry{Kind: "first"})
				time.Sleep(time.Second)
				synctest.Wait()
				j.Append(Entry{Kind: "second"})
				j.Append(Entry{Kind: "third"})
				sc.Write("i", "message", "|ß")
				s.Crash("a", mode, rand.New(rand.NewPCG(seed, 0)))

				if _, _, err := j.Follow(0).Next(t.Context()); !errors.Is(err, ErrClosed) {
					t.Fatalf("reader of a dead journal: %v", err)
				}
				if j.Append(Entry{Kind: "late"}) != 3 || sc.Write("i", "message", "late") {
					t.Fatal("a dead journal took something")
				}

				k, err := s.Open(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				lasts[k.Recovery().Last] = true
				var text strings.Builder
				for _, c := range k.(*memoryJournal).openItems() {
					text.WriteString(c.Text)
				}
				if !strings.HasPrefix("older ü|äöü|ß", text.String()) || strings.Contains(text.String(), "\ufffd") {
					t.Fatalf("open item is %q", text.String())
				}
				texts[text.Len()] = true
				if text.Len() < len("older ü|äöü") {
					t.Fatalf("a crash lost what was %v old: %q", time.Second, text.String())
				}
				k.Close()
			})
		}
		if len(lasts) != 3 || lasts[0] {
			t.Errorf("mode %d: last records seen after crashes: %v, want 1, 2 and 3", mode, lasts)
		}
		if len(texts) < 2 {
			t.Errorf("mode %d: lengths of open items seen after crashes: %v", mode, texts)
		}
	}
}

func TestMemoryReaderEndsWithContext(t *testing.T) {
	j := create(t, NewMemoryStore(MemoryOptions{}), "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := j.Follow(0).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next = %v", err)
	}
}
