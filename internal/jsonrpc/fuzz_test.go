package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbc\n\nlast"), 3)
	f.Add([]byte("toolong\nx\n"), 4)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = max(1, most%100)
		r := newLineReader(iotest.OneByteReader(bytes.NewReader(data)), most, nil)
		rest := data
		for {
			want, after, ended := bytes.Cut(rest, []byte("\n"))
			length := len(want)
			if ended {
				length++
			}
			line, err := r.next()
			if len(rest) == 0 {
				if !errors.Is(err, io.EOF) {
					t.Fatalf("at the end: %q, %v", line, err)
				}
				return
			}
			switch {
			case length > most && !errors.Is(err, errLong):
				t.Fatalf("%q has more than %d bytes: %q, %v", want, most, line, err)
			case length <= most && (err != nil || !bytes.Equal(line, want)):
				t.Fatalf("got %q, %v, want %q", line, err, want)
			}
			rest = after
		}
	})
}

// Whatever comes in: each line that goes out is a valid message, and every
// request that can be answered is, once.
func FuzzDispatch(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"echo","params":{"text":"x"}}`, `[{"id":1,"method":"echo"},{"id":2,"method":"x"},3]`,
		"{\"id\":1}\nrubbish\n{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}", `{"id":0,"result":1}`, "\xff", `{"id":"a","method":"stuck"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		why := make(chan error, 1000)
		var out bytes.Buffer
		c := New(t.Context(), Options{Cancel: "notifications/cancelled", Methods: []Method{echo, stuck(why)}})
		if strings.Count(in, "stuck") > 900 {
			t.Skip()
		}
		if err := c.Serve(context.Background(), strings.NewReader(in+"\n"+`{"id":"the last","method":"echo","params":{"text":"ok"}}`), &out); err != nil {
			t.Fatal(err)
		}
		answered := 0
		for line := range bytes.Lines(out.Bytes()) {
			parts := []json.RawMessage{line}
			if line[0] == '[' {
				if err := json.Unmarshal(line, &parts); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			for _, part := range parts {
				m := parseOne(part)
				var fields map[string]json.RawMessage
				if json.Unmarshal(part, &fields) != nil || string(fields["jsonrpc"]) != `"2.0"` || fields["id"] == nil {
					t.Fatalf("not a response: %s", part)
				}
				if !m.reply && string(fields["id"]) != "null" {
					t.Fatalf("not a response: %s", part)
				}
				if string(fields["id"]) == `"the last"` {
					answered++
				}
			}
		}
		if answered == 0 {
			t.Fatalf("the last request was not answered:\n%s", out.Bytes())
		}
	})
}
