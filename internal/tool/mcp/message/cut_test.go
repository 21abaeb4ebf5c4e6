package message

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// cutTo is what a cutter keeps of a message that it takes in pieces of a size.
func cutTo(keep, piece int, message string) string {
	c := cutter{keep: keep}
	for len(message) > 0 {
		n := min(piece, len(message))
		c.take([]byte(message[:n]))
		message = message[n:]
	}
	return string(c.finish())
}

func TestMessagesAreShortened(t *testing.T) {
	const keep = 300
	x, parts := strings.Repeat("x", 2000), strings.Repeat(`{"type":"text","text":"part"},`, 100)
	for name, tt := range map[string]struct{ message, want string }{
		"short": {`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"a\"\\é","x":[1,[2]]}]}}`, ""},
		"text": {
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"` + x + `","type":"text"}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"` + x[:246] + `\n[1754 bytes were left out here]","type":"text"}],"_meta":{"fermata/omittedBytes":1754}}}`,
		},
		"escapes": {
			`{"jsonrpc":"2.0","result":{"a":"` + strings.Repeat(`\"`, 900) + strings.Repeat(`\u00e9`, 100) + `"},"id":"last"}`,
			`{"jsonrpc":"2.0","result":{"a":"` + strings.Repeat(`\"`, 134) + `\n[2132 bytes were left out here]","_meta":{"fermata/omittedBytes":2132}},"id":"last"}`,
		},
		"characters": {
			`{"jsonrpc":"2.0","id":1,"result":{"a":"x` + strings.Repeat("é", 500) + `"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"a":"x` + strings.Repeat("é", 130) + `\n[740 bytes were left out here]","_meta":{"fermata/omittedBytes":740}}}`,
		},
		"image": {
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"` + x + `","mimeType":"image/png"}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"","mimeType":"image/png"}],"_meta":{"fermata/omittedBytes":2000}}}`,
		},
		"list": {
			`{"jsonrpc":"2.0","id":1,"result":{"content":[` + parts + `7],"isError":true}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[` + strings.Repeat(`{"type":"text","text":"part"},`, 9)[:9*30-1] + `],"isError":true,"_meta":{"fermata/omittedBytes":2732}}}`,
		},
		"members": {
			`{"jsonrpc":"2.0","result":{` + strings.Repeat(`"a":1,`, 300) + `"b":2},"id":"a\"7"}`,
			`{"jsonrpc":"2.0","id":"a\"7","error":{"code":-32603,"message":"` + ErrParts.Error() + `"}}`,
		},
		"members without an id": {`{"jsonrpc":"2.0","method":"x","params":{` + strings.Repeat(`"a":1,`, 300) + `"b":2}}`, "-"},
	} {
		want := strings.TrimPrefix(tt.want, "-")
		if tt.want == "" {
			want = tt.message
		}
		for _, piece := range []int{1, 2, 3, 7, 64, 1 << 20} {
			got := cutTo(keep, piece, tt.message)
			if got != want {
				t.Fatalf("%s, in pieces of %d:\n got %s\nwant %s", name, piece, got, want)
			}
			if got != "" && !json.Valid([]byte(got)) {
				t.Errorf("%s: not JSON: %s", name, got)
			}
		}
	}
}

// What a long message takes does not depend on its length, whatever it is made of.
func TestLongMessagesTakeLittle(t *testing.T) {
	const size, keep = 20 << 20, 1 << 20
	for name, part := range map[string]string{"text": "0123456789abcdé ", "list": `1,{"a":"b"},[2],`, "nested": "[[[[{{{{[[[[{{{{"} {
		piece := []byte(strings.Repeat(part, 64<<10/len(part)))
		c := cutter{keep: keep}
		c.take([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[`))
		if name == "text" {
			c.take([]byte(`{"type":"text","text":"`))
		}
		for taken := 0; taken < size; taken += len(piece) {
			c.take(piece)
		}
		if n := cap(c.out) + cap(c.id) + cap(c.last) + cap(c.key); n > 3*keep {
			t.Errorf("%s: %d bytes are kept", name, n)
		}
	}
}

// A service whose answer does not end is disconnected.
func TestAnAnswerWithoutAnEnd(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/json"} {
		endless := io.MultiReader(strings.NewReader("data: {\"a\":\""), endlessText{})
		answer := &http.Response{Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(endless)}
		ended := 0
		Shorten(answer, Bounds{Keep: 64 << 10, Longest: 1 << 20}, func() { ended++ })
		text, err := io.ReadAll(answer.Body)
		if err != ErrTooLong || ended != 1 || len(text) > 256<<10 {
			t.Errorf("%s: %d bytes were read, %v, ended %d times", kind, len(text), err, ended)
		}
	}
}

type endlessText struct{}

func (endlessText) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

// Events that are short pass as they are, when they are complete.
func TestEventsPass(t *testing.T) {
	const stream = ": it's \"quoted\n\nevent: message\r\nid: 7\r\ndata: {\"a\":\r\ndata: \"b\"}\r\n\r\ndata: {}\n\ndata: cut"
	for _, piece := range []int{1, 5, 1000} {
		r, w := io.Pipe()
		go func() { // ends with stream
			for rest := stream; rest != ""; {
				n := min(piece, len(rest))
				_, _ = io.WriteString(w, rest[:n])
				rest = rest[n:]
			}
			w.Close()
		}()
		answer := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, Body: r}
		Shorten(answer, DefaultBounds, nil)
		if text, err := io.ReadAll(answer.Body); err != nil || string(text) != stream {
			t.Errorf("in pieces of %d: %q, %v", piece, text, err)
		}
	}
}
