package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
)

func pending(n int, body string) journal.Pending {
	return journal.Pending{
		Record: journal.Record{Seq: uint64(n), Time: time.Unix(int64(n), 1000).UTC(), Turn: n / 2, Kind: "kind" + fmt.Sprint(n%3), Body: json.RawMessage(body)},
		Closes: fmt.Sprint(n) + ".",
	}
}

func TestRecordsReadBack(t *testing.T) {
	want := []journal.Pending{pending(1, `{"a":"<&>"}`), pending(2, "null"), pending(3, `"`+string(bytes.Repeat([]byte("ü"), 1000))+`"`)}
	got, err := DecodeRecords(EncodeRecords(want))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestMetaReadsBack(t *testing.T) {
	body := []byte("body")
	want := Meta{Version: Version, Epoch: 3, Node: "n", ID: 7, Prev: 1 << 40, Far: 2, Last: 9, Bytes: 10, Closed: true, Archived: true, Begin: true, Cut: true, Piece: 1, Pieces: 2}
	got, err := ParseMeta(want.Encode(body))
	want.Sum = got.Sum
	if got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if err := got.Verify(body); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]byte{nil, []byte("bodY"), []byte("body\n")} {
		if got.Verify(bad) == nil {
			t.Errorf("%q was taken for what was written", bad)
		}
	}
	for _, head := range []string{"", "{}", `{"v":2,"e":1}`, "x"} {
		if _, err := ParseMeta(head); err == nil {
			t.Errorf("%q was taken for a message of ours", head)
		}
	}
}

// Whatever bytes a body has, decoding neither panics nor invents records.
func FuzzDecode(f *testing.F) {
	f.Add(EncodeRecords([]journal.Pending{pending(1, "{}")}))
	f.Add([]byte(`{"size":5}` + "\nab"))
	f.Add([]byte(`{"size":-1}` + "\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		recs, err := DecodeRecords(b)
		if err == nil && len(recs) > len(b) {
			t.Errorf("%d records in %d bytes", len(recs), len(b))
		}
		if _, err := DecodeTexts(b); err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}

// A text that does not fit into a message is cut between runes, so that whoever reads a part of it reads text.
func TestTextIsCutBetweenRunes(t *testing.T) {
	text := strings.Repeat("aß€𝄐", 100)
	for room := 4; room < 40; room++ {
		for from := 0; from < len(text); {
			end := runeEnd([]byte(text), from, room)
			if end <= from || end-from > room || !utf8.ValidString(text[from:end]) {
				t.Fatalf("room for %d bytes: from %d to %d", room, from, end)
			}
			from = end
		}
	}
	if end := runeEnd(bytes.Repeat([]byte{0x80}, 100), 10, 20); end != 30 {
		t.Errorf("what is not UTF-8 is cut at %d", end)
	}
}
