//go:build unix

package modeltest

import (
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

// BenchmarkReplay measures how a client reads one reply of the server, replayed
// from memory, so that neither the network nor the server is measured.
func BenchmarkReplay(b *testing.B, s *Server, newClient func(http.RoundTripper) model.Client) {
	b.Helper()
	tape := &recorder{next: s.Transport()}
	if _, err := newClient(tape).Stream(b.Context(), Hello(), &Recorder{}); err != nil {
		b.Fatal(err)
	}
	c := newClient(replay{body: tape.body.Bytes(), end: io.EOF})
	b.SetBytes(int64(tape.body.Len()))
	b.ReportAllocs()
	begin, rounds := cpu(b), 0
	for b.Loop() {
		rounds++
		var n counter
		if _, err := c.Stream(b.Context(), Hello(), &n); err != nil {
			b.Fatal(err)
		}
		if n < 20000 {
			b.Fatalf("%d deltas", n)
		}
	}
	b.ReportMetric(float64(cpu(b)-begin)/float64(rounds), "cpu-ns/op")
}

// cpu is the processor time that this process has used. Unlike the time on the
// clock it says something on a busy machine.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A counter is a sink that only counts deltas.
type counter int

// Delta implements model.Sink.
func (c *counter) Delta(int, protocol.DeltaKind, string) { *c++ }

// Done implements model.Sink.
func (c *counter) Done(int, protocol.Body) {}
