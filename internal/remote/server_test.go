package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// connect gives a test a raw connection to a server of e.
func connect(t *testing.T, e engine.Engine) (*remote.Server, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	s := remote.NewServer(e, "test")
	go func() { _ = s.ServeConn(context.WithoutCancel(t.Context()), ours) }() // ends with the connection
	t.Cleanup(func() {
		theirs.Close()
		s.Close()
	})
	return s, theirs
}

func ask(t *testing.T, conn net.Conn, r *bufio.Reader, line string) string {
	t.Helper()
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestHelloComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		_, conn := connect(t, e)
		r := bufio.NewReader(conn)
		if got := ask(t, conn, r, `{"id":1,"method":"create","params":{"settings":{}}}`); !strings.Contains(got, "hello comes first") {
			t.Errorf("a stranger got %s", got)
		}
		if got := ask(t, conn, r, `{"id":2,"method":"hello","params":{"oldest":7,"newest":9}}`); !strings.Contains(got, "too old to join") {
			t.Errorf("a newer one got %s", got)
		}
		if got := ask(t, conn, r, `{"id":3,"method":"create","params":{"settings":{}}}`); !strings.Contains(got, "hello comes first") {
			t.Errorf("one that was refused got %s", got)
		}
		if got := ask(t, conn, r, `{"id":4,"method":"hello","params":{"oldest":1,"newest":9}}`); !strings.Contains(got, `"version":1`) {
			t.Errorf("a client got %s", got)
		}
		if page, err := e.List(t.Context(), engine.ListOptions{}); err != nil || len(page.Items) != 0 {
			t.Errorf("there are conversations: %+v, %v", page, err)
		}
	})
}

// One that connects and says nothing is not kept.
func TestSilentClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := connect(t, enginetest.New(t, enginetest.Options{}))
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Fatal("it was told something")
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("it was kept for %v", d)
		}
	})
}

// A client that follows and never reads holds up neither the turn nor others.
func TestClientThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		_, conn := connect(t, e)
		r := bufio.NewReader(conn)
		ask(t, conn, r, `{"id":1,"method":"hello","params":{"oldest":1,"newest":1}}`)
		ask(t, conn, r, fmt.Sprintf(`{"id":2,"method":"attach","params":{"id":%q,"stream":1}}`, id))
		fmt.Fprintln(conn, `{"id":3,"method":"next","params":{"stream":1}}`)
		w := e.Watch(id, 1)
		for n := range 100 {
			e.Say(id, "go")
			q := e.Request()
			for range 20 {
				q.Delta(fmt.Sprint("piece of turn ", n))
			}
			q.Answer("done")
			w.Expect("turn_ended completed")
		}
	})
}

func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		_, conn := connect(t, e)
		r := bufio.NewReader(conn)
		ask(t, conn, r, `{"id":1,"method":"hello","params":{"oldest":1,"newest":1}}`)
		for _, line := range []string{
			"\xff\xfe", "{", "[]", `{"id":{},"method":"ping"}`, strings.Repeat("[", 20000),
			`{"id":2,"method":"submit","params":{"id":"x","op":{"kind":"dance","body":{}}}}`,
			`{"id":2,"method":"submit","params":{"id":"../../etc/passwd","op":{"kind":"interrupt","body":{}}}}`,
			`{"id":2,"method":"submit","params":{"id":"x"}}`,
			`{"id":2,"method":"next","params":{"stream":99}}`,
			`{"id":2,"method":"attach","params":{"id":"x","stream":"one"}}`,
			`{"id":2,"method":"list","params":{"options":{"Cursor":"nonsense"}}}`,
		} {
			if got := ask(t, conn, r, line); !strings.Contains(got, `"error"`) {
				t.Errorf("%.60q was answered with %s", line, got)
			}
		}
		e.Say(id, "still there?")
		e.Request().Answer("yes")
	})
}

// What a client began ends with its connection; the turn goes on.
func TestClientThatVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		s, conn := connect(t, e)
		c, err := remote.Connect(t.Context(), conn, remote.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := e.Watch(id, 1)
		if _, err := c.Submit(t.Context(), id, p.UserTurn{Content: p.Text("go")}); err != nil {
			t.Fatal(err)
		}
		q := e.Request()
		followed := make(chan error, 1)
		go func() {
			var last error
			for _, err := range c.Subscribe(t.Context(), id, 0) {
				last = err
			}
			followed <- last
		}()
		synctest.Wait()
		c.Close()
		if err := <-followed; !errors.Is(err, remote.ErrLost) {
			t.Errorf("the follower got %v", err)
		}
		if _, err := c.Resume(t.Context(), id); !errors.Is(err, remote.ErrLost) {
			t.Errorf("a call got %v", err)
		}
		q.Answer("done")
		w.Expect("turn_ended completed")
		s.Close() // waits for everything that it began
	})
}

// An owner that has gone is told apart from one that does not respond.
func TestOwnerThatDoesNotRespond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, ours) }() // it reads, and never answers
		defer ours.Close()
		var silent *remote.UnresponsiveError
		if _, err := remote.Connect(t.Context(), theirs, remote.Options{}); !errors.As(err, &silent) {
			t.Errorf("it stopped before hello: %v", err)
		}
	})
}

func TestOwnerThatStopsResponding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		id := e.Begin()
		_, conn := connect(t, e)
		gate := &gated{Conn: conn, open: make(chan struct{})}
		close(gate.open)
		c, err := remote.Connect(t.Context(), gate, remote.Options{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		gate.open = make(chan struct{})
		defer close(gate.open)
		var silent *remote.UnresponsiveError
		if _, err := c.Submit(t.Context(), id, p.Interrupt{}); !errors.As(err, &silent) || silent.PID == 0 || !silent.Sent {
			t.Errorf("it stopped later: %v", err)
		}
		if _, err := c.Resume(t.Context(), id); !errors.As(err, &silent) || silent.Sent {
			t.Errorf("nothing to do was sent: %v", err)
		}
	})
}

// A gated connection passes nothing on while it is closed.
type gated struct {
	net.Conn
	open chan struct{}
}

func (g *gated) Write(b []byte) (int, error) {
	<-g.open
	return g.Conn.Write(b)
}

// An owner that does not respond for long and then ends is followed by another: what was asked is not given up.
func TestOwnerEndsAfterALongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		_, conn := connect(t, e)
		joined, err := remote.Connect(t.Context(), conn, remote.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := remote.NewRouter(e.Local, nil, remote.Options{Serve: func(context.Context, remote.Options) (*remote.Engine, error) { return joined, nil }})
		calls := 0
		err = c.Use(t.Context(), func(engine.Engine) error {
			if calls++; calls == 1 {
				time.Sleep(time.Minute)
				return engine.ErrClosed
			}
			return nil
		})
		if err != nil || calls != 2 {
			t.Errorf("%d calls, %v", calls, err)
		}
		calls = 0
		if err := c.Use(t.Context(), func(engine.Engine) error { calls++; return remote.ErrLost }); !errors.Is(err, remote.ErrLost) || calls < 2 {
			t.Errorf("an owner that never comes back: %d calls, %v", calls, err)
		}
	})
}

// Whoever only looks what there is does not count as a client, whether it is there or leaves: a process
// that is listed often still ends when it is idle.
func TestLookingIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := remote.NewServer(enginetest.New(t, enginetest.Options{}), "test")
		defer s.Close()
		changes := 0
		s.OnChange(func() { changes++ })
		for _, tc := range []struct {
			looks            bool
			clients, changes int
		}{{true, 0, 0}, {false, 1, 2}, {true, 0, 2}} {
			ours, theirs := net.Pipe()
			go func() { _ = s.ServeConn(context.WithoutCancel(t.Context()), ours) }() // ends with the connection
			e, err := remote.Connect(t.Context(), theirs, remote.Options{Looks: tc.looks})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Live(t.Context()); err != nil {
				t.Error(err)
			}
			if got := s.Clients(); got != tc.clients {
				t.Errorf("looks %v: %d clients, want %d", tc.looks, got, tc.clients)
			}
			e.Close()
			synctest.Wait()
			if changes != tc.changes || s.Clients() != 0 {
				t.Errorf("looks %v: %d changes, want %d; %d clients are left", tc.looks, changes, tc.changes, s.Clients())
			}
		}
	})
}
