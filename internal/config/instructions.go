package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/rootfs"
	"github.com/fermata-agent/fermata/internal/secrets"
)

const (
	instructionsName = "AGENTS.md"
	projectSeparator = "\n\n--- project-doc ---\n\n"
)

// Docs is what AGENTS.md files say.
type Docs struct {
	Text  string   // empty if there is nothing
	Files []string // where it is from, in order
}

// Instructions collects what AGENTS.md files say: the one in home first, then
// those of the project from the root of its git repository down to cwd. Outside a repository
// only cwd is looked at. At most limit bytes are taken from the project, none if
// that is zero. A file that cannot be read, is too long, or takes too long to read
// is a warning, and so is one of the project that is a link to a file elsewhere:
// a repository must not choose which files of the user's are sent to a service.
// In a directory of the project that has no AGENTS.md the first of the fallbacks
// is read.
func Instructions(home, cwd string, limit int64, fallbacks ...string) (Docs, []Warning) {
	open := func(path string, check func(real string) error) (*os.File, error) {
		return rootfs.OpenRegular(path, func(real string) error {
			if secrets.Among(real, secrets.Home(home).Files()) {
				return errors.New("it holds a secret")
			}
			return check(real)
		})
	}
	r := docReader{open: open, late: make(chan struct{})}
	timer := time.AfterFunc(slowest, func() { close(r.late) })
	defer timer.Stop()
	return r.all(home, cwd, limit, append([]string{instructionsName}, fallbacks...))
}

// slowest is how long all instructions together may take to read.
const slowest = 2 * time.Second

func (r *docReader) all(home, cwd string, limit int64, names []string) (Docs, []Warning) {
	var docs Docs
	global := strings.TrimSpace(r.read(filepath.Join(home, instructionsName), "/", maxGlobal))
	project := r.project(cwd, limit, names)

	docs.Files = r.files
	switch {
	case global == "":
		docs.Text = project
	case project == "":
		docs.Text = global
	default:
		docs.Text = global + projectSeparator + project
	}
	return docs, r.warnings
}

// maxGlobal keeps a mistake in the home from filling the memory.
const maxGlobal = 1 << 20

type docReader struct {
	open     func(path string, check func(real string) error) (*os.File, error)
	late     chan struct{} // closed when nothing is waited for any more
	files    []string
	warnings []Warning
}

// project reads the files from the root of the repository to cwd. If there are several, each
// begins with its name: it holds for its own directory.
func (r *docReader) project(cwd string, limit int64, names []string) string {
	var parts, from []string
	dirs := ProjectDirs(cwd, limit)
	for _, dir := range dirs {
		before := len(r.warnings)
		text := r.first(dir, dirs[0], names, limit)
		if text == "" {
			continue
		}
		parts = append(parts, text)
		from = append(from, r.files[len(r.files)-1])
		limit -= int64(len(text))
		if len(r.warnings) > before {
			limit = 0 // it was cut: no crumbs of the next one for what a letter left over
		}
	}
	if len(parts) > 1 {
		for i, name := range from {
			parts[i] = "From " + name + ":\n\n" + parts[i]
		}
	}
	return strings.Join(parts, "\n\n")
}

// first reads the first of the files in dir that there is. See read.
func (r *docReader) first(dir, root string, names []string, limit int64) string {
	for _, name := range names {
		before := len(r.warnings)
		if text := r.read(filepath.Join(dir, name), root, limit); text != "" || len(r.warnings) > before {
			return text
		}
	}
	return ""
}

// ProjectDirs are the directories from the root of the repository to cwd.
func ProjectDirs(cwd string, limit int64) []string {
	if limit <= 0 {
		return nil
	}
	dir, err := filepath.Abs(cwd)
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	dirs := []string{dir}
	for d := dir; ; {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			slices.Reverse(dirs)
			return dirs
		}
		up := filepath.Dir(d)
		if up == d {
			return []string{dir}
		}
		d = up
		dirs = append(dirs, d)
	}
}

// read returns the beginning of a file whose real path is below root, or nothing
// if it is blank.
func (r *docReader) read(name, root string, limit int64) string {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return "" // as in most directories: not worth a goroutine
	}
	text, err := r.inTime(func() (string, error) { return r.start(name, root, limit+1) })
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		r.warn(name, "is left out: "+err.Error())
		return ""
	}
	if int64(len(text)) > limit {
		end := limit
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
		r.warn(name, fmt.Sprintf("is too long: only %d bytes of it are used", len(text)))
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	r.files = append(r.files, name)
	return strings.ToValidUTF8(text, "?")
}

func (r *docReader) warn(name, text string) {
	r.warnings = append(r.warnings, Warning{Problem: Problem{Source: Source{Kind: FromFile, File: name}, Text: text}})
}

var (
	errSlow      = errors.New("it takes too long to read")
	errElsewhere = errors.New("it is a link to a file outside of the project")
)

// inTime waits for a read as long as there is time. A read that hangs in the
// system cannot be stopped; it ends with the process.
func (r *docReader) inTime(read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-r.late:
		return "", errSlow
	}
}

// start returns the beginning of a file.
func (r *docReader) start(name, root string, most int64) (string, error) {
	f, err := r.open(name, func(real string) error {
		if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
			return errElsewhere
		}
		return nil
	})
	if err != nil {
		return "", bare(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return string(text), err
}

// bare is an error without the path, which the warning names already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
