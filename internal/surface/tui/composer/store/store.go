// Package store keeps what the composer needs outside the program: the history
// of what was sent, as JSON lines in one file for all conversations, and the
// names of files to complete. It does I/O; call it from a tea.Cmd.
package store

import "context"

// A History is a file of JSON lines to which any number of processes append.
type History struct{ path string }

// NewHistory returns the history at path. Nothing is touched yet; the file is
// made, readable by its owner only, by the first Add.
func NewHistory(path string) *History { return &History{path} }

// Load returns the newest entries, the oldest of them first. A missing file is
// an empty history; a line that cannot be read is left out.
func (h *History) Load() ([]string, error) { return nil, nil }

// Add appends an entry.
func (h *History) Add(entry string) error { return nil }

// A Lister returns paths relative to the directory it lists, with slashes.
type Lister func(ctx context.Context) ([]string, error)

// Walk lists the files under dir itself, at most max of them.
func Walk(dir string, max int) Lister {
	return func(context.Context) ([]string, error) { return nil, nil }
}

// Files finds files by a few of their letters.
type Files struct{ list []Lister }

// NewFiles returns a finder that takes its names from the first of the listers
// that succeeds, for example git's own list and then Walk.
func NewFiles(list ...Lister) *Files { return &Files{list} }

// Find returns at most 50 paths, the best first. It is a composer.Files.
func (f *Files) Find(ctx context.Context, typed string) []string { return nil }
