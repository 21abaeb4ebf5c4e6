// Package keys saves the keys of model services, and the logins to MCP servers: in the keyring of the system where there is one,
// else in a file that only the user can read. A key is saved under the name of the variable
// that it would otherwise be in. Neither place can be read by commands, and a saved key is in
// no environment.
package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// A Place is where a key is saved.
type Place string

// The places.
const (
	Keyring Place = "the system keyring"
	File    Place = "a file"
)

// A Ring is a keyring of the system.
type Ring interface {
	Get(name string) (string, error)
	Set(name, key string) error
	Delete(name string) error
}

// A Store has the keys of one home directory.
type Store struct {
	home secrets.Home
	dir  string // keys/VARIABLE is the key, keys/VARIABLE.keyring says that the keyring has it
	ring Ring   // nil if there is none
}

// Open returns the store of a home directory. Nothing is read, and no keyring is asked, before
// a key is needed.
func Open(home string) *Store {
	s := &Store{home: secrets.Home(home), dir: filepath.Join(home, "keys")}
	if hasKeyring() {
		s.ring = system{}
	}
	return s
}

// hasKeyring reports whether the system may have a keyring. Where no session bus runs, asking
// for one would start it.
func hasKeyring() bool {
	if runtime.GOOS == "darwin" {
		return true
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	_, err := os.Stat(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus"))
	return err == nil && os.Getenv("XDG_RUNTIME_DIR") != ""
}

const inKeyring = ".keyring"

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// Get returns a saved key and where it is.
func (s *Store) Get(name string) (key string, from Place, err error) {
	if !variable().MatchString(name) {
		return "", "", nil
	}
	text, err := s.home.Read(filepath.Join(s.dir, name))
	if err == nil {
		return strings.TrimSpace(string(text)), File, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("read the saved key %s: %w", name, err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, name+inKeyring)); err != nil {
		return "", "", nil
	}
	if s.ring == nil {
		return "", "", fmt.Errorf("the key %s is in the system keyring, which is not available here", name)
	}
	key, err = s.ring.Get(name)
	if err != nil {
		return "", "", fmt.Errorf("read the key %s from the system keyring: %w", name, err)
	}
	return key, Keyring, nil
}

// Env returns a lookup of variables in which a saved key stands for one that is not set. A key
// that cannot be read is as if it were not there: the provider then says which it needs.
func (s *Store) Env(getenv func(string) string) func(string) string {
	return func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		key, _, _ := s.Get(name)
		return key
	}
}

// Save saves a key, in the keyring if that can be done.
func (s *Store) Save(name, key string) (Place, error) {
	if !variable().MatchString(name) {
		return "", fmt.Errorf("save the key: %q is not the name of a variable", name)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, name)
	if s.ring != nil && s.ring.Set(name, key) == nil {
		if err := regular.Replace(file+inKeyring, nil, 0o600); err != nil {
			return "", err
		}
		return Keyring, remove(file)
	}
	if err := regular.Replace(file, []byte(key+"\n"), 0o600); err != nil {
		return "", err
	}
	return File, remove(file + inKeyring)
}

// Delete forgets a key. It reports false if there was none.
func (s *Store) Delete(name string) (bool, error) {
	if !slices.Contains(s.Names(), name) {
		return false, nil
	}
	file := filepath.Join(s.dir, name)
	if _, err := os.Stat(file + inKeyring); err == nil && s.ring != nil {
		if err := s.ring.Delete(name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return false, fmt.Errorf("delete the key %s from the system keyring: %w", name, err)
		}
	}
	return true, errors.Join(remove(file), remove(file+inKeyring))
}

// Names are the variables of the saved keys.
func (s *Store) Names() []string {
	entries, _ := regular.ReadDir(s.dir) // without one there are none
	var names []string
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), inKeyring); !e.IsDir() && variable().MatchString(name) {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// system is the keyring that the system has.
type system struct{}

const service = "fermata"

// keyringTime is how long the keyring may take: it may ask the user to unlock it.
const keyringTime = time.Minute

var errSlow = errors.New("it does not answer")

// inTime does something with the keyring. What hangs there ends with the process.
func inTime[T any](do func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-time.After(keyringTime):
		var none T
		return none, errSlow
	}
}

func (system) Get(name string) (string, error) {
	return inTime(func() (string, error) { return keyring.Get(service, name) })
}

func (system) Set(name, key string) error {
	_, err := inTime(func() (struct{}, error) { return struct{}{}, keyring.Set(service, name, key) })
	return err
}

func (system) Delete(name string) error {
	_, err := inTime(func() (struct{}, error) { return struct{}{}, keyring.Delete(service, name) })
	return err
}
