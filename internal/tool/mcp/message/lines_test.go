package message

import (
	"strings"
	"testing"
)

// What looks like a message and is none does not reach the SDK, which would end the connection.
func TestLinesThatLookLikeMessages(t *testing.T) {
	const call, answer = `{"jsonrpc":"2.0","method":"ping","id":1}`, `{"jsonrpc":"2.0","id":"a","result":{}}`
	var passed, stray strings.Builder
	f := NewLineFilter(&passed, func(b []byte) { stray.Write(b) }, DefaultBounds, func() { t.Error("a line is too long") })
	garbage := "[1,2]\n[]\n[INFO] up\n{}\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}\n[" + call + ",7]\n"
	messages := call + "\n" + answer + "\n[" + call + "," + answer + "]\n" + `{"jsonrpc":"2.0","method":"note"}` + "\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}` + "\n"
	f.Take([]byte(garbage + messages))
	if passed.String() != messages {
		t.Errorf("passed on:\n%s", passed.String())
	}
	if stray.String() != garbage {
		t.Errorf("stray:\n%s", stray.String())
	}
}

func TestLinesThatAreNoMessagesAreDropped(t *testing.T) {
	var out, stray strings.Builder
	f := NewLineFilter(&out, func(b []byte) { stray.Write(b) }, DefaultBounds, nil)
	for _, piece := range []string{"hello\n{\"jsonrpc\":", "\"2.0\",\"id\":1} \r\n\n", "{\"id\":2}\n[{\"jsonrpc\":\"2.0\",\"id\":3}]\n{", "\n{\"jsonrpc\":\"2.0\"}"} {
		f.Take([]byte(piece))
	}
	if want := "{\"jsonrpc\":\"2.0\",\"id\":1}\n[{\"jsonrpc\":\"2.0\",\"id\":3}]\n"; out.String() != want {
		t.Errorf("passed on %q, want %q", out.String(), want)
	}
	if want := "hello\n{\"id\":2}\n{\n"; stray.String() != want {
		t.Errorf("dropped %q, want %q", stray.String(), want)
	}
}
