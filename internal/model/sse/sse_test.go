package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
)

func readAll(t *testing.T, src io.Reader) ([]string, error) {
	t.Helper()
	var got []string
	r := NewReader(src)
	for {
		data, err := r.Next()
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, string(data))
	}
}

func TestEvents(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string
	}{
		"one":                         {"data: a\n\n", []string{"a"}},
		"two":                         {"data: a\n\ndata: b\n\n", []string{"a", "b"}},
		"no space after the colon":    {"data:a\n\n", []string{"a"}},
		"only one space is taken off": {"data:  a\n\n", []string{" a"}},
		"several lines":               {"data: a\ndata: b\ndata\ndata:c\n\n", []string{"a\nb\n\nc"}},
		"crlf":                        {"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{"a\nb", "c"}},
		"cr":                          {"data: a\rdata: b\r\rdata: c\r\r", []string{"a\nb", "c"}},
		"comments and other fields":   {": hi\nevent: x\nid: 1\nretry: 5\ndata: a\n:\n\n: bye\n\n", []string{"a"}},
		"a longer field name":         {"database: x\n\ndata: a\n\n", []string{"a"}},
		"events without data":         {"event: ping\n\n\n\ndata: a\n\n", []string{"a"}},
		"empty data":                  {"data\n\ndata: a\n\n", []string{"", "a"}},
		"no empty line at the end":    {"data: a\n", []string{"a"}},
		"no line end at the end":      {"data: a", []string{"a"}},
		"done":                        {"data: [DONE]\n\ndata: DONE\n\n", []string{"[DONE]", "DONE"}},
		"nothing":                     {"", nil},
	}
	readers := map[string]func(string) io.Reader{
		"at once":      func(s string) io.Reader { return strings.NewReader(s) },
		"byte by byte": func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"data and err": func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
	}
	for name, tt := range tests {
		for how, reader := range readers {
			t.Run(name+"/"+how, func(t *testing.T) {
				got, err := readAll(t, reader(tt.in))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("events (-want +got):\n%s", d)
				}
			})
		}
	}
}

func TestAnErrorOfTheSourceIsReturnedAndTheOpenEventIsNot(t *testing.T) {
	broken := errors.New("broken")
	src := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))
	got, err := readAll(t, src)
	if !errors.Is(err, broken) {
		t.Errorf("error is %v, want %v", err, broken)
	}
	if d := cmp.Diff([]string{"a"}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestAHugeEvent(t *testing.T) {
	big := strings.Repeat("x", MaxLine-10)
	got, err := readAll(t, strings.NewReader("data: "+big+"\ndata: "+big+"\n\ndata: end\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != big+"\n"+big || got[1] != "end" {
		t.Errorf("got %d events, want the big one and the end", len(got))
	}
}

func TestALineThatIsTooLong(t *testing.T) {
	for name, prefix := range map[string]string{"data": "data: ", "comment": ": "} {
		for _, end := range []string{"\n\n", ""}[:longtest.Default(2, 1)] {
			if _, err := readAll(t, strings.NewReader(prefix+strings.Repeat("x", MaxLine)+end)); !errors.Is(err, ErrTooLong) && end != "" {
				t.Errorf("%s %q: %v", name, end, err)
			}
		}
		long := io.MultiReader(strings.NewReader(prefix), io.LimitReader(endless{}, 1<<30))
		if _, err := NewReader(long).Next(); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s without end: %v", name, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestAnEventThatIsTooLong(t *testing.T) {
	for name, in := range map[string]string{
		"one line":      "data: " + strings.Repeat("x", 5000) + "\n\n",
		"without end":   "data: " + strings.Repeat("x", 50000),
		"several lines": strings.Repeat("data: "+strings.Repeat("x", 100)+"\n", 50) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(strings.NewReader(in))
			r.limit, r.most = 4500, 4500
			if _, err := r.Next(); !errors.Is(err, ErrTooLong) {
				t.Errorf("error is %v, want %v", err, ErrTooLong)
			}
		})
	}
}

func TestAReaderThatGivesNothing(t *testing.T) {
	if _, err := NewReader(stuck{}).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error is %v, want %v", err, io.ErrNoProgress)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// FuzzReader checks that how the bytes arrive makes no difference, and that the
// events are those of a plain split into lines.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"data: a\r\n\r\ndata:b\n\n", "data\ndata: x\n\n: c\n", "\r\r\n\ndata: a", "data: \xff\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := readAll(t, bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		bits, err := readAll(t, iotest.OneByteReader(bytes.NewReader(in)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole, bits); d != "" {
			t.Errorf("byte by byte it reads differently:\n%s", d)
		}
		if d := cmp.Diff(plain(string(in)), whole); d != "" {
			t.Errorf("events (-plain +got):\n%s", d)
		}
	})
}

func plain(in string) []string {
	in = strings.ReplaceAll(in, "\r\n", "\n")
	in = strings.ReplaceAll(in, "\r", "\n")
	var events, data []string
	for _, line := range strings.Split(in, "\n") {
		switch {
		case line == "":
			if data != nil {
				events = append(events, strings.Join(data, "\n"))
			}
			data = nil
		case line == "data":
			data = append(data, "")
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(line[5:], " "))
		}
	}
	if data != nil {
		events = append(events, strings.Join(data, "\n"))
	}
	return events
}

func BenchmarkRead20000Events(b *testing.B) {
	in := strings.Repeat("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" word\",\"logprobs\":[]}\n\n", 20000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(strings.NewReader(in))
		n := 0
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			n++
		}
		if n != 20000 {
			b.Fatalf("%d events", n)
		}
	}
}
