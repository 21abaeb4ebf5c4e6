//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"sync"
	"time"
)

// pump reads all sources to their end, each in its own goroutine: what arrives
// on both at almost the same time may change places.
type pump struct {
	sources []source
	done    chan struct{}
}

// startPump begins to deliver output to sink. The sources are closed by finish.
func startPump(sources []source, sink Sink) (*pump, error) {
	p := &pump{sources: sources, done: make(chan struct{})}
	go p.run(sink)
	return p, nil
}

func (p *pump) run(sink Sink) {
	defer close(p.done)
	var mu sync.Mutex // one delivery at a time
	var all sync.WaitGroup
	for _, s := range p.sources {
		all.Go(func() {
			buf := make([]byte, chunkSize)
			for {
				n, err := s.file.Read(buf)
				if n > 0 && sink != nil {
					mu.Lock()
					sink(s.stream, buf[:n])
					mu.Unlock()
				}
				if errors.Is(err, os.ErrDeadlineExceeded) {
					mu.Lock()
					s.rest(buf, sink)
					mu.Unlock()
				}
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// finish waits for the end of all output, but no longer than limit: a process
// that is not ours may hold a pipe open. Then it closes the sources.
func (p *pump) finish(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for _, s := range p.sources {
		_ = s.file.SetReadDeadline(deadline)
	}
	<-p.done
	for _, s := range p.sources {
		_ = s.file.Close()
	}
}
