package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
)

// A peer says something and closes; that it has closed is noticed by a write first.
func TestLastWordsAfterAFailedWrite(t *testing.T) {
	for _, all := range []bool{true, false} {
		t.Run(fmt.Sprint(all), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, peer := io.Pipe()
				heard := false
				c := New(t.Context(), Options{ReadToEnd: all, Methods: []Method{Listen("bye", func(context.Context, struct{}) { heard = true })}})
				ended := make(chan error, 1)
				go func() { ended <- c.Serve(t.Context(), in, closedWriter{}) }()
				called := make(chan error, 1)
				go func() {
					_, err := c.Call(t.Context(), "work", nil)
					called <- err
				}()
				synctest.Wait() // the write has failed
				go func() {
					_, _ = io.WriteString(peer, "{\"jsonrpc\":\"2.0\",\"method\":\"bye\"}\n") // fails if no client reads
					peer.Close()
				}()
				if err := <-called; !errors.Is(err, ErrClosed) {
					t.Errorf("the call: %v", err)
				}
				if err := <-ended; !errors.Is(err, errWriter) || heard != all {
					t.Errorf("it ended with %v, heard the last words: %t, want %t", err, heard, all)
				}
				in.Close()
			})
		})
	}
}

var errWriter = errors.New("broken pipe")

// A closedWriter is a stream that the peer has closed.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errWriter }
