package fleet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// connect returns a process that asks for permits.
func connect(t *testing.T, ps *Permits) (*Permitted, io.Closer) {
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() { // ends with the connection
		defer close(done)
		_ = ps.Serve(there)
	}()
	t.Cleanup(func() {
		here.Close()
		there.Close()
		<-done
	})
	return NewPermitted(here), here
}

// Who has many turns waits as long as who has few: of two users that always want more, each gets every second permit.
func TestPermitsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := NewPermits(1)
		a, _ := connect(t, ps)
		b, _ := connect(t, ps)
		order := make(chan string, 100)
		var users sync.WaitGroup
		defer users.Wait()
		for name, user := range map[string]*Permitted{"a": a, "b": b} {
			users.Go(func() { // ends with its turns
				for range 10 {
					release, err := user.Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					order <- name
					time.Sleep(time.Second)
					release()
				}
			})
		}
		last := ""
		for range 20 {
			if got := <-order; got == last {
				t.Errorf("%s got two permits in a row", got)
			} else {
				last = got
			}
		}
	})
}

// There are never more turns than permits; what a process had that has ended is free; who gives up has none.
func TestPermitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := NewPermits(2)
		a, end := connect(t, ps)
		b, _ := connect(t, ps)
		for range 2 {
			if _, err := a.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := b.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third: %v", err)
		}
		end.Close()
		if _, err := a.Acquire(t.Context()); !errors.Is(err, ErrAlone) {
			t.Errorf("without a connection: %v", err)
		}
		synctest.Wait()
		var all []func()
		for range 2 {
			release, err := b.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, release)
		}
		for _, release := range all {
			release()
			release() // counts once
		}
		synctest.Wait()
		ps.mu.Lock()
		defer ps.mu.Unlock()
		if ps.free != 2 {
			t.Errorf("%d are free", ps.free)
		}
	})
}
