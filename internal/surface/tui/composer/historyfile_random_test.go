package composer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// Whatever is in the file, and wherever a write was cut off: all whole lines are
// read, in their order, and nothing in front of them is changed by an Add.
func TestAnyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	for seed := range uint64(longtest.Default(300, 100)) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var data bytes.Buffer
		var want []string
		for i := range rnd.IntN(20) {
			switch rnd.IntN(4) {
			case 0:
				data.Write(garbage(rnd))
				data.WriteByte('\n')
			default:
				text := fmt.Sprintf("entry %d \n 漢字", i)
				line, err := json.Marshal(historyEntry{int64(i), text})
				if err != nil {
					t.Fatal(err)
				}
				if rnd.IntN(6) == 0 {
					data.Write(line[:1+rnd.IntN(len(line)-1)]) // cut off, and the next process went on
					data.WriteByte('\n')
					continue
				}
				data.Write(append(line, '\n'))
				want = append(want, text)
			}
		}
		if rnd.IntN(2) == 0 {
			data.WriteString(`{"ts":1,"text":"never fin`)
		}
		if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		h := NewHistoryFile(path)
		if diff := cmp.Diff(want, load(t, h)); diff != "" {
			t.Fatalf("seed %d, before (-want +got):\n%s", seed, diff)
		}
		add(t, h, "last")
		if diff := cmp.Diff(append(want, "last"), load(t, h)); diff != "" {
			t.Fatalf("seed %d, after (-want +got):\n%s", seed, diff)
		}
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(now, data.Bytes()) {
			t.Fatalf("seed %d: what was there is changed", seed)
		}
	}
}

// garbage returns bytes without a newline that are no entry.
func garbage(rnd *rand.Rand) []byte {
	b := make([]byte, rnd.IntN(40))
	for i := range b {
		if b[i] = byte(rnd.IntN(256)); b[i] == '\n' {
			b[i] = 0
		}
	}
	return append([]byte{'?'}, b...)
}
