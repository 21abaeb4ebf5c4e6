package mcp

import (
	"strings"
	"testing"
)

// What looks like a message and is none does not reach the SDK, which would end the connection.
func TestLinesThatLookLikeMessages(t *testing.T) {
	const call, answer = `{"jsonrpc":"2.0","method":"ping","id":1}`, `{"jsonrpc":"2.0","id":"a","result":{}}`
	var passed, stray strings.Builder
	f := &lineFilter{to: &passed, stray: func(b []byte) { stray.Write(b) }}
	garbage := "[1,2]\n[]\n[INFO] up\n{}\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}\n[" + call + ",7]\n"
	messages := call + "\n" + answer + "\n[" + call + "," + answer + "]\n" + `{"jsonrpc":"2.0","method":"note"}` + "\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}` + "\n"
	f.take([]byte(garbage + messages))
	if passed.String() != messages {
		t.Errorf("passed on:\n%s", passed.String())
	}
	if stray.String() != garbage {
		t.Errorf("stray:\n%s", stray.String())
	}
}
