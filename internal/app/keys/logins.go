package keys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/regular"
)

// Logins are what services gave for the person's logins to MCP servers, saved where keys are.
type Logins struct{ store *Store }

// OpenLogins returns those of a home directory. Nothing is read before it is needed.
func OpenLogins(home string) *Logins {
	s := Open(home)
	s.dir = filepath.Join(s.dir, "mcp")
	return &Logins{s}
}

// entry is the name that a login is saved under. It depends on the address as well: what one service gave
// is never sent to another.
func entry(name, url string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + url))
	return "mcp_" + strings.ReplaceAll(name, "-", "_") + "_" + hex.EncodeToString(sum[:8])
}

// Load returns what is saved for a server, empty if nothing is.
func (l *Logins) Load(name, url string) (string, error) {
	text, _, err := l.store.Get(entry(name, url))
	return text, err
}

// lockPause is how long to wait before a lock is tried again.
const lockPause = 10 * time.Millisecond

// Update replaces what is saved by what decide makes of it; empty deletes it. Meanwhile no other process
// can do the same. It waits for one that does until ctx ends.
func (l *Logins) Update(ctx context.Context, name, url string, decide func(saved string) string) error {
	key := entry(name, url)
	if err := os.MkdirAll(l.store.dir, 0o700); err != nil {
		return err
	}
	lock, err := regular.OpenFile(filepath.Join(l.store.dir, key+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the login to %s: %w", name, err)
	}
	defer lock.Close() // and with it the lock
	for unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	saved, _, err := l.store.Get(key)
	if err != nil {
		return err
	}
	switch text := decide(saved); text {
	case saved:
		return nil
	case "":
		_, err = l.store.Delete(key)
	default:
		_, err = l.store.Save(key, text)
	}
	return err
}
