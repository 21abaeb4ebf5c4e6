package remote_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
)

// Whoever has not said hello sends little, has few connections, and takes none from clients.
func TestStrangersOfTheSocket(t *testing.T) {
	e := enginetest.New(t, enginetest.Options{})
	s := remote.NewServer(e, "test")
	connect := func() net.Conn {
		ours, theirs := net.Pipe()
		go func() { _ = s.ServeConn(context.WithoutCancel(t.Context()), ours) }() // ends with the connection
		t.Cleanup(func() { theirs.Close() })
		return theirs
	}
	t.Cleanup(s.Close)
	client := connect()
	r := bufio.NewReader(client)
	if got := ask(t, client, r, `{"id":1,"method":"hello","params":{"oldest":1,"newest":1}}`); !strings.Contains(got, `"version":1`) {
		t.Fatal(got)
	}
	const strangers = 100
	before := runtime.NumGoroutine()
	var all []net.Conn
	for range strangers {
		conn := connect()
		_, _ = io.WriteString(conn, `{"id":1,`) // a pipe: it is served now, or closed
		all = append(all, conn)
	}
	for _, conn := range all[:strangers-remote.MaxStrangers] {
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d strangers: %d goroutines", strangers, runtime.NumGoroutine()-before)
	long := strings.Repeat("x", remote.StrangerLine+1)
	for text, conn := range map[string]net.Conn{"a line has more than": all[strangers-1], `"id":2`: client} {
		r := bufio.NewReader(conn)
		if got := ask(t, conn, r, `{"id":2,"method":"ping","params":{},"x":"`+long+`"}`); !strings.Contains(got, text) {
			t.Errorf("a long line was answered with %.200s", got)
		}
	}
}
