package unreachable

import (
	"io"
	"net"
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/internal/secrets"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The address of a listener is registered from its first accepted connection to its end; whoever connected before is not
// served.
func TestListener(t *testing.T) {
	home := secrets.Home(t.TempDir())
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	early, err := net.Dial("tcp", plain.Addr().String())
	must(t, err)
	defer early.Close()
	l, err := Listener(string(home), plain)
	must(t, err)
	at, _ := l.Addr().(*net.TCPAddr)
	if got := home.Ports(); !slices.Equal(got, []uint16{uint16(at.Port)}) {
		t.Errorf("registered %d, want %d", got, at.Port)
	}
	late, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer late.Close()
	conn, err := l.Accept()
	must(t, err)
	defer conn.Close()
	if conn.RemoteAddr().String() != late.LocalAddr().String() {
		t.Fatalf("accepted %v, want %v", conn.RemoteAddr(), late.LocalAddr())
	}
	if n, err := early.Read(make([]byte, 1)); err == nil {
		t.Errorf("who connected before was sent %d bytes", n)
	}
	must(t, l.Close())
	if got := home.Ports(); len(got) != 0 {
		t.Errorf("still registered: %d", got)
	}
}

// All addresses of all servers that are known are registered before the first connection is made.
func TestDialer(t *testing.T) {
	home := secrets.Home(t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	registered := make(chan []uint16, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		registered <- home.Ports()
		conn.Close()
	}()
	d := &Dialer{Home: home, URLs: []string{"nats://user:pw@192.0.2.1:4333", " 192.0.2.2", "tls://[2001:db8::1]:4444", "nats://host.invalid:4555", ":", "x:y"}, DefaultPort: 4222}
	conn, err := d.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	_, _ = io.ReadAll(conn)
	at, _ := l.Addr().(*net.TCPAddr)
	got := <-registered
	want := []uint16{4222, 4333, 4444, uint16(at.Port)}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("registered %d, want %d", got, want)
	}
	none := func([]byte) bool { return false }
	if !home.Refuses(secrets.Address{IP: []byte{192, 0, 2, 2}, Port: 4222}, none) || home.Refuses(secrets.Address{IP: []byte{192, 0, 2, 3}, Port: 4222}, none) {
		t.Error("not the address is refused, or more")
	}
	must(t, d.Register("192.0.2.1:4333", "192.0.2.9:4666"))
	if got := home.Ports(); len(got) != len(want)+1 {
		t.Errorf("registered %d: once each, and one more", got)
	}
}
