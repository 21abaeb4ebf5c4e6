package secrets

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/fermata-agent/fermata/internal/regular"
)

// A File is a flag that names a file with a secret. It is read by its method Read only.
type File struct{ name string }

// NewFile returns the flag with a value.
func NewFile(name string) File { return File{name} }

// String returns the name.
func (f *File) String() string { return f.name }

// Set sets the name.
func (f *File) Set(name string) error {
	f.name = name
	return nil
}

// Type says what the value is, in help texts that name no placeholder.
func (*File) Type() string { return "file" }

// IsSet reports whether a file is named.
func (f *File) IsSet() bool { return f.name != "" }

// maxSecret is longer than any token, key or chain of certificates. A device such as /dev/zero has no end.
const maxSecret = 1 << 20

// Read registers the file in a home, and reads it. It may be a pipe, from which a password manager gives the secret. A file with several names is refused: commands
// could read it by another one.
func (f *File) Read(h Home) ([]byte, error) {
	if err := h.Register(f.name); err != nil {
		return nil, err
	}
	file, err := os.Open(f.name) // waits for the other end of a pipe, which the user has named
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
		return nil, &fs.PathError{Op: "read", Path: f.name, Err: fmt.Errorf("it has %d names (hard links), and commands could read it by another: copy it to a file of its own", st.Nlink)}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		return nil, &fs.PathError{Op: "read", Path: f.name, Err: fmt.Errorf("%w for a secret: more than %d bytes", regular.ErrTooLarge, maxSecret)}
	}
	return text, err
}

// Equal reports whether two flags name the same file.
func (f File) Equal(other File) bool { return f == other }
