package keys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zalando/go-keyring"
)

// A ring is a keyring that works, or does not.
type ring struct {
	keys   map[string]string
	broken error
}

func (r ring) Get(name string) (string, error) {
	key, ok := r.keys[name]
	if !ok {
		return "", keyring.ErrNotFound
	}
	return key, r.broken
}
func (r ring) Set(name, key string) error { r.keys[name] = key; return r.broken }
func (r ring) Delete(name string) error   { delete(r.keys, name); return r.broken }

const name = "OPENAI_API_KEY"

func TestKeysInAFile(t *testing.T) {
	for why, r := range map[string]Ring{"no keyring": nil, "a broken one": ring{map[string]string{}, errors.New("locked")}} {
		s := &Store{dir: filepath.Join(t.TempDir(), "keys"), ring: r}
		if place, err := s.Save(name, "sk-1"); place != File || err != nil {
			t.Fatalf("%s: %v, %v", why, place, err)
		}
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the file: %v, %v", why, info.Mode(), err)
		}
		if key, from, err := s.Get(name); key != "sk-1" || from != File || err != nil {
			t.Errorf("%s: got %q from %q, %v", why, key, from, err)
		}
		if found, err := s.Delete(name); !found || err != nil {
			t.Errorf("%s: delete: %t, %v", why, found, err)
		}
		if found, err := s.Delete(name); found || err != nil {
			t.Errorf("%s: delete again: %t, %v", why, found, err)
		}
		if key, _, err := s.Get(name); key != "" || err != nil {
			t.Errorf("%s: then %q, %v", why, key, err)
		}
	}
}

func TestKeysInTheKeyring(t *testing.T) {
	r := ring{keys: map[string]string{}}
	s := &Store{dir: filepath.Join(t.TempDir(), "keys")}
	if _, err := s.Save(name, "old"); err != nil {
		t.Fatal(err)
	}
	s.ring = r
	if place, err := s.Save(name, "sk-1"); place != Keyring || err != nil {
		t.Fatalf("%v, %v", place, err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
		t.Error("the old key is still in its file")
	}
	env := s.Env(func(n string) string { return map[string]string{"SET": "here"}[n] })
	for n, want := range map[string]string{name: "sk-1", "SET": "here", "NONE": "", "../x": ""} {
		if got := env(n); got != want {
			t.Errorf("%s: got %q, want %q", n, got, want)
		}
	}
	s.ring = nil
	if _, _, err := s.Get(name); err == nil {
		t.Error("a keyring that is gone is no error")
	}
	s.ring = r
	if found, err := s.Delete(name); !found || err != nil || len(r.keys) != 0 || len(s.Names()) != 0 {
		t.Errorf("delete: %t, %v, %v", found, err, r.keys)
	}
}

func TestNamesOfKeys(t *testing.T) {
	s := &Store{dir: filepath.Join(t.TempDir(), "keys")}
	for _, bad := range []string{"", "../x", "a b", "1X"} {
		if _, err := s.Save(bad, "k"); err == nil {
			t.Errorf("%q was saved", bad)
		}
	}
}
