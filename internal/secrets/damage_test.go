package secrets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/regular"
)

// damages put at a path what waits for ever or has no end if it is read as a file or a directory.
var damages = map[string]func(path string) error{
	"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"zero": func(path string) error { return os.Symlink("/dev/zero", path) },
	"large": func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
	},
	"itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
}

// A secret of a fixed name is a regular file.
func TestDamagedSecret(t *testing.T) {
	for name, damage := range damages {
		home := Home(t.TempDir())
		file := filepath.Join(string(home), "keys", "token")
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, damage(file))
		if text, err := home.Read(file); err == nil {
			t.Errorf("%s: %d bytes were read", name, len(text))
		}
	}
}

// What the user names may be a pipe. What has no end is an error.
func TestFileOfAFlagThatIsNone(t *testing.T) {
	home := Home(t.TempDir())
	zero := NewFile("/dev/zero")
	if text, err := zero.Read(home); !errors.Is(err, regular.ErrTooLarge) {
		t.Errorf("%d bytes were read, %v", len(text), err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(pipe, []byte("sesame"), 0o600) }()
	f := NewFile(pipe)
	if text, err := f.Read(home); string(text) != "sesame" || err != nil {
		t.Errorf("pipe: %q, %v", text, err)
	}
	must(t, <-done)
	if got := home.Registered(); len(got) != 0 {
		t.Errorf("registered %q", got)
	}
}

// Whatever is in the place of an entry: nothing waits, what others have registered is known, and a file whose entry cannot be made is not read.
func TestDamagedEntries(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			home := Home(t.TempDir())
			known, token := write(t, t.TempDir(), "known"), write(t, t.TempDir(), "token")
			must(t, home.Register(token))
			entries, err := os.ReadDir(home.Dir())
			must(t, err)
			entry := filepath.Join(home.Dir(), entries[0].Name())
			must(t, home.Register(known))
			forget, err := home.Listen(Address{Port: 4500})
			must(t, err)
			defer forget()

			must(t, os.Remove(entry))
			must(t, damage(entry))
			must(t, damage(filepath.Join(home.Dir(), addressPrefix+"4500-1-1")))
			held.Delete(entry)
			if got := home.Registered(); !slices.Equal(got, []string{known}) {
				t.Errorf("registered %q", got)
			}
			if !home.Refuses(Address{[]byte{127, 0, 0, 1}, 4500}, own) || !slices.Contains(home.Ports(), 4500) {
				t.Error("the port that is registered is not refused")
			}
			text, err := home.Read(token)
			if registered := slices.Contains(home.Registered(), token); (err == nil) != registered || registered != (name == "large") {
				t.Errorf("read %q, %v, registered: %t", text, err, registered)
			}
			home.prune(0)
			if _, err := os.Lstat(entry); err != nil {
				t.Errorf("pruned: %v", err)
			}
		})
	}
}

// The directory of the entries is damaged: nothing waits, and nothing is read that cannot be registered.
func TestDamagedRegistry(t *testing.T) {
	for name, damage := range damages {
		home := Home(t.TempDir())
		must(t, os.Mkdir(filepath.Dir(home.Dir()), 0o700))
		must(t, damage(home.Dir()))
		if got := home.Registered(); len(got) != 0 {
			t.Errorf("%s: registered %q", name, got)
		}
		if home.Refuses(Address{[]byte{127, 0, 0, 1}, 1}, own) || len(home.Ports()) != 0 {
			t.Errorf("%s: a port is refused", name)
		}
		if text, err := home.Read(write(t, t.TempDir(), "token")); err == nil {
			t.Errorf("%s: read %q", name, text)
		}
		if _, err := home.Listen(Address{Port: 1}); err == nil {
			t.Errorf("%s: a port that could not be registered is served", name)
		}
		home.prune(0)
	}
}

// An entry that is a link to a file is not followed: that file would be overwritten.
func TestEntryThatIsALink(t *testing.T) {
	home := Home(t.TempDir())
	token, other := write(t, t.TempDir(), "token"), write(t, t.TempDir(), "other")
	must(t, home.Register(token))
	entries, err := os.ReadDir(home.Dir())
	must(t, err)
	entry := filepath.Join(home.Dir(), entries[0].Name())
	must(t, os.Remove(entry))
	must(t, os.Symlink(other, entry))
	held.Delete(entry)
	if text, err := home.Read(token); err == nil {
		t.Errorf("read %q", text)
	}
	if text, err := os.ReadFile(other); string(text) != "sesame" || err != nil {
		t.Errorf("the other file holds %q, %v", text, err)
	}
}
