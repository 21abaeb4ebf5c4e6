// Package queue keeps the messages that clients have put into the queue of a thread, in a file for each thread, until they are
// sent. It sends nothing itself. What a method has done is on disk when it returns.
package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/fermata-agent/fermata/internal/regular"
	p "github.com/fermata-agent/fermata/protocol"
)

// Max is how many messages a thread may have in its queue.
const Max = 100

// The errors of a queue.
var (
	ErrFull    = errors.New("the queue is full")
	ErrUnknown = errors.New("there is no such message in the queue")
	ErrOrder   = errors.New("not the messages of the queue, each once")
)

// An Entry is a message that waits.
type Entry struct {
	ID       string      `json:"id"`
	ClientID string      `json:"client_id"` // the client's own name for it
	Content  []p.Content `json:"content"`
}

// state is what the file holds.
type state struct {
	Entries []Entry `json:"entries"`
	Paused  bool    `json:"paused,omitempty"`
	Last    int     `json:"last"` // the number of the last entry there was
}

// A Queue is the queue of a thread. Its methods may be called from any goroutine.
type Queue struct {
	file string

	mu      sync.Mutex
	state   state // guarded by mu
	driving bool  // a goroutine sends what is in it; guarded by mu
}

// Open reads the queue of a thread. One that was left with messages in it is paused: whatever sent them has gone.
func Open(dir string, id p.ConversationID) (*Queue, error) {
	q := &Queue{file: filepath.Join(dir, string(id)+".json")}
	text, err := regular.ReadFile(q.file)
	if errors.Is(err, fs.ErrNotExist) {
		return q, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &q.state)
	}
	if err != nil {
		return nil, fmt.Errorf("read the queue: %w", err)
	}
	q.state.Paused = len(q.state.Entries) > 0
	return q, nil
}

// change makes a change and saves it; if that fails nothing has changed.
func (q *Queue) change(f func(*state) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.state
	next.Entries = slices.Clone(next.Entries)
	if err := f(&next); err != nil {
		return err
	}
	if err := save(q.file, next); err != nil {
		return fmt.Errorf("save the queue: %w", err)
	}
	q.state = next
	return nil
}

// save replaces the file, or removes it if there is nothing to remember.
func save(file string, s state) error {
	if len(s.Entries) == 0 && !s.Paused {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return regular.Replace(file, text, 0o600)
}

// Add puts a message at the end.
func (q *Queue) Add(clientID string, content []p.Content) (Entry, error) {
	e := Entry{ClientID: clientID, Content: content}
	err := q.change(func(s *state) error {
		if len(s.Entries) >= Max {
			return ErrFull
		}
		s.Last++
		e.ID = strconv.Itoa(s.Last)
		s.Entries = append(s.Entries, e)
		return nil
	})
	return e, err
}

// Update changes a message.
func (q *Queue) Update(id string, content []p.Content) (Entry, error) {
	var e Entry
	err := q.change(func(s *state) error {
		i := s.find(id)
		if i < 0 {
			return ErrUnknown
		}
		s.Entries[i].Content = content
		e = s.Entries[i]
		return nil
	})
	return e, err
}

func (s *state) find(id string) int {
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.ID == id })
}

// Delete takes a message out, and reports whether it was there.
func (q *Queue) Delete(id string) (bool, error) {
	err := q.change(func(s *state) error {
		i := s.find(id)
		if i < 0 {
			return ErrUnknown
		}
		s.Entries = slices.Delete(s.Entries, i, i+1)
		s.Paused = s.Paused && len(s.Entries) > 0
		return nil
	})
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	return err == nil, err
}

// Forget takes out what was delivered: the file may not know it after a crash.
func (q *Queue) Forget(delivered func(clientID string) bool) error {
	return q.change(func(s *state) error {
		s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.ClientID != "" && delivered(e.ClientID) })
		s.Paused = s.Paused && len(s.Entries) > 0
		return nil
	})
}

// Reorder puts the messages into an order that names each once.
func (q *Queue) Reorder(ids []string) error {
	return q.change(func(s *state) error {
		var next []Entry
		for _, id := range ids {
			i := s.find(id)
			if i < 0 || slices.ContainsFunc(next, func(e Entry) bool { return e.ID == id }) {
				return ErrOrder
			}
			next = append(next, s.Entries[i])
		}
		if len(next) != len(s.Entries) {
			return ErrOrder
		}
		s.Entries = next
		return nil
	})
}

// Pause holds the queue, or lets it go on.
func (q *Queue) Pause(paused bool) error {
	return q.change(func(s *state) error {
		s.Paused = paused && len(s.Entries) > 0
		return nil
	})
}

// List returns the messages in order, and whether they are held.
func (q *Queue) List() (entries []Entry, paused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.state.Entries), q.state.Paused
}

// Drive reports whether the caller is to send what is in the queue: there is something, and no goroutine does. It then calls
// Next until that reports false.
func (q *Queue) Drive() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.driving || q.state.Paused || len(q.state.Entries) == 0 {
		return false
	}
	q.driving = true
	return true
}

// Next returns the message that is to be sent next. Without one the caller is done.
func (q *Queue) Next() (Entry, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state.Paused || len(q.state.Entries) == 0 {
		q.driving = false
		return Entry{}, false
	}
	return q.state.Entries[0], true
}

// Stop says that the caller of Drive sends no more, for a reason of its own.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.driving = false
}
