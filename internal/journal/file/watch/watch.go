// Package watch reports when the files of conversations are changed by other processes.
package watch

import (
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/file/disk"
)

// A Watcher reports to those who ask when a file may have changed. Where the system reports it (see notifier) nothing
// happens while nothing changes, however many files are watched. The others are looked at from time to time, all by one
// goroutine. Set FS and Poll before the first Watch.
type Watcher struct {
	FS   disk.FS
	Poll bool // do not ask the system

	mu       sync.Mutex
	watched  map[string]*watched // by path
	notifier *notifier           // nil unless the system reports changes of some
	polling  chan struct{}       // closed to end poller; nil if there is none
}

// watched is a file that is watched. Watcher.mu guards it.
type watched struct {
	path    string
	polled  bool
	last    fs.FileInfo // as the poller saw it; nil before
	clients map[chan struct{}]struct{}
}

// pollEvery is how often files are looked at of which the system reports nothing.
const pollEvery = 2 * time.Second

// Watch returns a channel that receives a value when the file has changed, and is closed when another one, or none, is in
// its place. stop ends it.
func (c *Watcher) Watch(path string) (changed <-chan struct{}, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[path]
	if w == nil {
		w = &watched{path: path, clients: make(map[chan struct{}]struct{})}
		if c.watched == nil {
			c.watched = make(map[string]*watched)
		}
		c.watched[path] = w
		c.begin(w)
	}
	client := make(chan struct{}, 1) // one report is as good as several
	w.clients[client] = struct{}{}
	return client, func() { c.unwatch(w, client) }
}

// begin has the system report changes of a file, or else has it polled. mu is held.
func (c *Watcher) begin(w *watched) {
	if !c.Poll && c.notifier == nil {
		c.notifier = newNotifier(c)
	}
	dir := filepath.Dir(w.path)
	if !c.Poll && c.notifier.add(dir) {
		return
	}
	w.polled = true
	w.last, _ = c.FS.Lstat(w.path) // if it is gone, the poller says so
	if c.polling == nil {
		c.polling = make(chan struct{})
		go c.poller(c.polling)
	}
}

// unwatch forgets a client, and what only it needed.
func (c *Watcher) unwatch(w *watched, client chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(w.clients, client)
	if len(w.clients) == 0 && c.watched[w.path] == w {
		c.forget(w)
	}
}

// forget ends what was begun for a file. mu is held.
func (c *Watcher) forget(w *watched) {
	delete(c.watched, w.path)
	if !w.polled {
		c.notifier.remove(filepath.Dir(w.path))
	}
	reported, polled := false, false
	for _, other := range c.watched {
		reported, polled = reported || !other.polled, polled || other.polled
	}
	if !reported && c.notifier != nil {
		c.notifier.close()
		c.notifier = nil
	}
	if !polled && c.polling != nil {
		close(c.polling)
		c.polling = nil
	}
}

// report tells the clients of a file that it may have changed. mu is held.
func (w *watched) report() {
	for client := range w.clients {
		select {
		case client <- struct{}{}:
		default: // it has one to look at already
		}
	}
}

// end tells the clients of a file that it is somewhere else, or nowhere: they watch it again, wherever it is. mu is
// held.
func (c *Watcher) end(w *watched) {
	for client := range w.clients {
		close(client)
	}
	clear(w.clients)
	c.forget(w)
}

// poller looks at those that need it until stop is closed.
func (c *Watcher) poller(stop <-chan struct{}) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.pollOnce()
		case <-stop:
			return
		}
	}
}

func (c *Watcher) pollOnce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watched {
		if !w.polled {
			continue
		}
		st, err := c.FS.Lstat(w.path)
		switch {
		case err != nil || w.last == nil || !c.FS.SameFile(st, w.last):
			c.end(w)
		case st.Size() != w.last.Size() || !st.ModTime().Equal(w.last.ModTime()):
			w.last = st
			w.report()
		}
	}
}
