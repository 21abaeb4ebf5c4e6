package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/journal"
)

func sampleLine(seq uint64, body string) []byte {
	b, _ := AppendRecord(nil, &journal.Pending{Record: journal.Record{Seq: seq, Kind: "k", Body: json.RawMessage(body)}, Closes: "c"}, Link{})
	return b
}

// Lines come out of what they went into, wherever they are cut into buffers.
func TestScannerFindsEverySpan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var data []byte
		var wanted []string
		for i := range 1 + r.IntN(20) {
			switch r.IntN(4) {
			case 0:
				l := sampleLine(uint64(i+1), fmt.Sprintf(`"%s"`, strings.Repeat("ä", r.IntN(2000))))
				data = append(data, l...)
				wanted = append(wanted, fmt.Sprint("record ", i+1))
			case 1:
				data = AppendProgress(data, "i", journal.Piece{Text: []byte("text\x00"), Tag: "t"}, Link{})
				wanted = append(wanted, "progress")
			case 2:
				data = append(data, "garbage\n"...)
				wanted = append(wanted, "bad")
			case 3:
				data = append(data, make([]byte, 1+r.IntN(600))...)
				wanted = append(wanted, "zeros")
			}
		}
		sc := NewScanner(bytes.NewReader(data), 0, 0, int64(len(data)))
		sc.All = make([]byte, 1+r.IntN(500))
		wanted = compactZeros(wanted)
		if got := spans(t, sc, data); !slices.Equal(got, wanted) {
			t.Fatalf("spans are %v, want %v", got, wanted)
		}
	}
}

func compactZeros(all []string) []string {
	var out []string
	for _, s := range all {
		if s != "zeros" || len(out) == 0 || out[len(out)-1] != "zeros" {
			out = append(out, s)
		}
	}
	return out
}

// spans describes what a scanner finds; together it must be all of data.
func spans(t *testing.T, sc *Scanner, data []byte) []string {
	t.Helper()
	var all []string
	var end int64
	for {
		sp, err := sc.Next()
		if err != nil {
			break
		}
		whole := data[sp.Off : sp.Off+sp.Size]
		if sp.Off != end || !bytes.HasPrefix(whole, sp.Data) || sp.Ended != bytes.HasSuffix(whole, []byte("\n")) {
			t.Fatalf("span at %d of %d bytes after %d", sp.Off, sp.Size, end)
		}
		end = sp.Off + sp.Size
		switch {
		case sp.Kind == RecordLine:
			all = append(all, fmt.Sprint("record ", sp.Seq))
		case sp.Kind == ProgressLine:
			all = append(all, "progress")
		case sp.Data == nil || len(sp.Data) > 0 && sp.Data[0] == 0:
			all = append(all, "zeros")
		default:
			all = append(all, "bad")
		}
	}
	if end != int64(len(data)) {
		t.Fatalf("spans end at %d of %d", end, len(data))
	}
	return compactZeros(all)
}

func TestSalvage(t *testing.T) {
	one, two := sampleLine(1, `{"a":1}`), sampleLine(2, `{"n":5,"sum":"x"}`)
	full := sampleLine(3, `[`+strings.Repeat(`{"n":1,"sum":"12345678"},`, 50)+`0]`)
	bare := func(b []byte) string { return strings.TrimSuffix(string(b), "\n") }
	for _, test := range []struct {
		data string
		want []string
	}{
		{bare(one) + bare(two) + "\n", []string{"record 1", "record 2"}},
		{bare(one) + "x" + bare(two) + "\n", []string{"record 1", "bad", "record 2"}},
		{"junk" + bare(two), []string{"bad", "record 2"}},
		{bare(two) + "junk\n", []string{"record 2", "bad"}},
		{bare(one)[:20] + bare(two) + bare(one)[20:] + "\n", []string{"bad", "record 2", "bad"}},
		{bare(full) + "\x00\x00" + bare(two) + "\n", []string{"record 3", "zeros", "record 2"}},
		{bare(full)[:50] + "\x00\x00" + bare(full)[52:] + "\n" + string(two), []string{"bad", "zeros", "bad", "record 2"}},
		{`{"n":{"n":,"sum":"` + "\n", []string{"bad"}},
		{strings.Repeat(`{"n":`, 1000) + strings.Repeat(`,"sum":"12345678"}`, 1000) + "\n", []string{"bad"}},
	} {
		sc := NewScanner(strings.NewReader(test.data), 0, 0, int64(len(test.data)))
		if got := spans(t, sc, []byte(test.data)); !slices.Equal(got, test.want) {
			t.Errorf("%.80q: %v, want %v", test.data, got, test.want)
		}
	}
}

// The sum is CRC-32C: journals of earlier versions have it.
func TestChecksum(t *testing.T) {
	if got := Checksum([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("%08x", got)
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "plain", `"\`, "\x00\x01\n\r\t\x1f\x7f", "ä–🙂\u2028\ufffd", "\xff bad \xc3"} {
		var got string
		b := AppendString(nil, s)
		if err := json.Unmarshal(b, &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q became %s: %q, %v", s, b, got, err)
		}
		if Unquote(b[1:len(b)-1]) != got || bytes.ContainsAny(b, "\x00\n") {
			t.Errorf("%q became %q", s, b)
		}
	}
}

func TestParseLineRefuses(t *testing.T) {
	sum := func(s string) []byte {
		return fmt.Appendf(nil, `%s,"sum":"%08x"}`, s, Checksum([]byte(s)))
	}
	at := `"2026-11-15T11:41:54.123456Z"`
	good := `{"n":1,"t":` + at + `,"turn":0,"kind":"k","body":{}`
	if ParseLine(sum(good)).Kind != RecordLine {
		t.Fatal("the good line is refused")
	}
	for _, s := range []string{
		``, `{`, `{"n":0,"t":` + at + `,"turn":0,"kind":"k","body":{}`,
		`{"n":-1,"t":` + at + `,"turn":0,"kind":"k","body":{}`,
		`{"n":1111111111111111111,"t":` + at + `,"turn":0,"kind":"k","body":{}`,
		`{"n":1,"t":"","turn":0,"kind":"k","body":{}`,
		`{"n":1,"t":` + at + `,"turn":,"kind":"k","body":{}`,
		`{"n":1,"t":` + at + `,"turn":0,"kind":"k","body":`,
		`{"n":1,"t":` + at + `,"turn":0,"kind":"k`,
		`{"n":1,"t":` + at + `,"kind":"k","turn":0,"body":{}`,
		`{"item":"i","tag":"t","at":-1,"text":""`,
		`{"item":"i","tag":"t","at":1,"text":"",`,
		`{"item":"i","tag":"t","at":1,"text":"\"`,
	} {
		if l := ParseLine(sum(s)); l.Kind != BadLine {
			t.Errorf("%s is taken for %+v", s, l)
		}
	}
}
