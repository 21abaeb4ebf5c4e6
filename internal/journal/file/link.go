package file

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/fermata-agent/fermata/internal/journal/file/disk"
)

// replaceLink puts a copy of the file that a link leads to in the link's place, if a conversation's journal is
// one. That file is left as it is.
func (s *Store) replaceLink(ctx context.Context, id string) error {
	path, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if st, err := s.fs.Lstat(path); err != nil || st.Mode().Type() != fs.ModeSymlink {
		return err
	}
	l, err := disk.TakeLock(s.fs, path+lockSuffix, s.self())
	if err != nil {
		return err
	}
	defer l.Release()
	from, err := disk.Follow(s.fs, path)
	if err != nil {
		return fmt.Errorf("%s is a symbolic link that leads to no file: %w", path, err)
	}
	defer from.Close()
	if err := from.Lock(); err != nil {
		return fmt.Errorf("lock what %s leads to: %w", path, err)
	}
	st, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := s.replace(path, func(to File) error {
		_, err := io.Copy(to, io.NewSectionReader(from, 0, st.Size()))
		return err
	})
	if err != nil {
		return err
	}
	return to.Close()
}
