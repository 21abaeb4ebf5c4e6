// Package openfile reads and changes files that a user has open in an editor, where they may differ from the disk.
package openfile

import (
	"context"
	"fmt"

	"github.com/fermata-agent/fermata/internal/patch"
)

// Buffers are the files that a user has open. Paths are absolute, symbolic links resolved.
type Buffers interface {
	// Read returns a file as the editor has it. It is false if the editor cannot say.
	Read(ctx context.Context, path string) (text string, ok bool)

	// CanWrite reports whether the editor can be asked to change a file, which Write does.
	CanWrite() bool
	Write(ctx context.Context, path, text string) error
}

// MaxSize is how large a file may be that the editor is asked for.
const MaxSize = 4 << 20

// An FS is the files as the user sees them: those of the disk, or what the editor has of them.
type FS struct {
	patch.FS
	ctx     context.Context // of the call that reads
	buffers Buffers
	unsaved map[string]bool // those that were read and differ from the disk
}

// NewFS returns the files of a disk, as an editor has them. It serves one call.
func NewFS(ctx context.Context, disk patch.FS, b Buffers) *FS {
	return &FS{disk, ctx, b, map[string]bool{}}
}

// ReadFile reads a file. What the disk refuses is not asked for.
func (f *FS) ReadFile(path string) ([]byte, error) {
	data, err := f.FS.ReadFile(path)
	if err != nil || len(data) > MaxSize {
		return data, err
	}
	if text, ok := f.buffers.Read(f.ctx, path); ok && text != string(data) {
		f.unsaved[path] = true
		return []byte(text), nil
	}
	return data, nil
}

// An Apply carries a plan out, as patch.Apply does.
type Apply func(ctx context.Context, plan *patch.Plan, rec patch.Record, commit func(patch.Record) error) error

// Apply returns what carries a plan out that was made from these files: disk, or, if the file is not saved in the editor, what changes it there. The
// error says why neither can.
func (f *FS) Apply(plan *patch.Plan, disk Apply) (Apply, error) {
	for _, file := range plan.Files {
		switch {
		case !f.unsaved[file.Path]:
			continue
		case !f.buffers.CanWrite():
			return nil, fmt.Errorf("%s has changes in the user's editor that are not saved, and the editor cannot be asked to change it: ask the user to save the file", file.Path)
		case len(plan.Files) > 1 || file.After == nil || file.From != "":
			return nil, fmt.Errorf("%s has changes in the user's editor that are not saved: change it in a patch of its own, or ask the user to save it; it cannot be moved or deleted meanwhile", file.Path)
		}
		return f.inEditor(file), nil
	}
	return disk, nil
}

// inEditor has the editor change a file. It is committed when the editor has done so: a patch of which that is not known counts as not applied.
func (f *FS) inEditor(file patch.File) Apply {
	return func(ctx context.Context, _ *patch.Plan, rec patch.Record, commit func(patch.Record) error) error {
		if err := f.buffers.Write(ctx, file.Path, file.After.Data); err != nil {
			return fmt.Errorf("the editor did not change %s: %w", file.Path, err)
		}
		return commit(rec)
	}
}
