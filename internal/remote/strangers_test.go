package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
)

// newListener returns what connects to a new server.
func newListener(t *testing.T) (connect func() net.Conn) {
	t.Helper()
	s := remote.NewServer(enginetest.New(t, enginetest.Options{}), "test")
	t.Cleanup(s.Close)
	return func() net.Conn {
		ours, theirs := net.Pipe()
		go func() { _ = s.ServeConn(context.WithoutCancel(t.Context()), ours) }() // ends with the connection
		t.Cleanup(func() { theirs.Close() })
		return theirs
	}
}

const helloLine = `{"id":1,"method":"hello","params":{"oldest":1,"newest":1}}`

// Whoever has not said hello sends little, has few connections, and takes none from clients.
func TestStrangersOfTheSocket(t *testing.T) {
	connect := newListener(t)
	client := connect()
	r := bufio.NewReader(client)
	if got := ask(t, client, r, helloLine); !strings.Contains(got, `"version":1`) {
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
	for text, conn := range map[string]net.Conn{fmt.Sprintf("a line has more than %d bytes", remote.StrangerLine): all[strangers-1], `"id":2`: client} {
		r := bufio.NewReader(conn)
		if got := ask(t, conn, r, `{"id":2,"method":"ping","params":{},"x":"`+long+`"}`); !strings.Contains(got, text) {
			t.Errorf("a long line was answered with %.200s", got)
		}
	}
}

// However many strangers there are, all connections of clients can be had, and not one more.
func TestStrangersTakeNoConnections(t *testing.T) {
	connect := newListener(t)
	for i := range remote.MaxClients {
		conn := connect()
		if got := ask(t, conn, bufio.NewReader(conn), helloLine); !strings.Contains(got, `"version":1`) {
			t.Fatalf("client %d: %s", i, got)
		}
		if i < remote.MaxStrangers/2 { // those who are there first take no place either
			_, _ = io.WriteString(connect(), `{"id":1,`)
		}
	}
	conn := connect()
	if got := ask(t, conn, bufio.NewReader(conn), helloLine); !strings.Contains(got, "clients at once") {
		t.Errorf("one too many: %s", got)
	}
}

// Strangers who send long lines take memory from each other, and none from clients.
func TestStrangersTakeNoMemory(t *testing.T) {
	connect := newListener(t)
	client := connect()
	r := bufio.NewReader(client)
	if got := ask(t, client, r, helloLine); !strings.Contains(got, `"version":1`) {
		t.Fatal(got)
	}
	const mib = 1 << 20
	part := strings.Repeat("x", 5*mib/2) // of each line the first MiB is free, then whole ones count
	for range remote.StrangerLines / (2 * mib) {
		if _, err := io.WriteString(connect(), part); err != nil {
			t.Fatal(err)
		}
	}
	long := `{"id":2,"method":"ping","params":{},"x":"` + part + `"}`
	if got := ask(t, client, r, long); !strings.Contains(got, `"id":2`) {
		t.Errorf("the line of a client was answered with %.200s", got)
	}
	last := connect()
	if got := ask(t, last, bufio.NewReader(last), long); !strings.Contains(got, "a line has more than") {
		t.Errorf("the line of one stranger too many was answered with %.200s", got)
	}
}
