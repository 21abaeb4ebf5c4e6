// Package unreachable keeps servers out of the reach of confined commands: those that this process is, and those that it
// uses. It registers their addresses in the home, see package secrets.
package unreachable

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/fermata-agent/fermata/internal/secrets"
)

// Listener registers the address of a TCP listener whose clients can have commands run, so that confined
// commands of this home cannot connect to it. Who connected before that is hung up on. Closing the listener it returns ends both.
func Listener(home string, l net.Listener) (net.Listener, error) {
	at, ok := l.Addr().(*net.TCPAddr)
	tcp, isTCP := l.(*net.TCPListener)
	if !ok || !isTCP {
		return l, nil
	}
	forget, err := secrets.Home(home).Listen(secrets.Address{Port: uint16(at.Port)})
	if err != nil {
		l.Close()
		return nil, err
	}
	r := &registered{l, forget}
	if err := hangUp(tcp); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// hangUp closes the connections that wait to be accepted.
func hangUp(l *net.TCPListener) error {
	if err := l.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return l.SetDeadline(time.Time{})
		}
		if err != nil {
			return err
		}
		conn.Close()
	}
}

// A registered listener is forgotten when it is closed.
type registered struct {
	net.Listener
	forget func()
}

func (r *registered) Close() error {
	defer r.forget()
	return r.Listener.Close()
}
