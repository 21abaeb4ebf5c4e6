package pipe

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A peer that was not answered yet cannot make us hold more than a greeting.
func TestStrangerSendsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, newBus())
		read := make(chan int64, 1)
		go func() { // whoever serves reads what comes, and waits for the end of a line
			n, _ := io.Copy(io.Discard, server)
			read <- n
		}()
		for range 100 {
			_, _ = client.Write(make([]byte, 10<<10)) // it fails when the server has closed
		}
		client.Close()
		time.Sleep(time.Minute)
		if n := <-read; n > maxGreeting {
			t.Errorf("%d bytes of a stranger were taken", n)
		}
	})
}

// One that was answered can send as much as it likes.
func TestAnsweredPeerSendsMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t, newBus())
		if _, err := server.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = client.Write(make([]byte, 3*window)) }() // ends when all of it is read
		if n, err := io.CopyN(io.Discard, server, 3*window); err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// Peers that say nothing take few connections, and none of those that are left for others.
func TestStrangersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newBus()
		l, err := Listen(bus, "node", Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		accepted := make(chan io.ReadWriteCloser, maxConns)
		go func() { // ends with the listener
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		before := runtime.NumGoroutine()
		var open []*Conn
		var refused error
		for range 200 {
			c, err := Dial(t.Context(), bus, "node", Options{})
			if err != nil {
				refused = err
				continue
			}
			open = append(open, c)
		}
		if len(open) != maxStrangers || refused == nil {
			t.Errorf("%d strangers are connected, and the others got %v", len(open), refused)
		}
		if n := runtime.NumGoroutine() - before; n > 5*maxStrangers {
			t.Errorf("they cost %d goroutines", n)
		}
		for range open { // those that are answered are no strangers
			if _, err := (<-accepted).Write([]byte("hello")); err != nil {
				t.Error(err)
			}
		}
		for range 2 * maxConns {
			c, err := Dial(t.Context(), bus, "node", Options{})
			if err != nil {
				break
			}
			open = append(open, c)
			if _, err := (<-accepted).Write([]byte("hello")); err != nil {
				t.Error(err)
			}
		}
		if len(open) != maxConns {
			t.Errorf("%d are connected, want %d", len(open), maxConns)
		}
		for _, c := range open {
			c.Close()
		}
		time.Sleep(time.Minute)
		c, err := Dial(t.Context(), bus, "node", Options{})
		if err != nil {
			t.Fatalf("when all have left: %v", err)
		}
		c.Close()
		time.Sleep(time.Minute) // the other side notices
	})
}
