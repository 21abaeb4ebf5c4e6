package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/rootfs"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
	"github.com/fermata-agent/fermata/protocol"
)

// Files is how the tools that only look reach files.
type Files struct {
	// Secret says which paths must not be read: keys, tokens, fermata's own
	// sockets. The path is absolute, symbolic links resolved. May be nil.
	Secret func(path string) bool

	Buffers openfile.Buffers // what the user has open in an editor; may be nil
}

// locate returns the absolute path that a model means, symbolic links resolved.
func (f *Files) locate(call Call, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	named := within(call.Settings.Cwd, path)
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return "", plainError(err)
	}
	if f.secret(real) {
		return "", fmt.Errorf("%s must not be read: it holds secrets", named)
	}
	return real, nil
}

// secret reports whether a path must not be read.
func (f *Files) secret(path string) bool { return f != nil && f.Secret != nil && f.Secret(path) }

// buffer returns what the user's editor has of a file, after the same checks as for the disk. It is false if there is no editor, or it cannot say.
func (f *Files) buffer(ctx context.Context, call Call, path string) (string, bool) {
	if f == nil || f.Buffers == nil {
		return "", false
	}
	real, err := f.locate(call, path)
	if err != nil {
		return "", false
	}
	if info, err := rootfs.Lstat(real); err != nil || !info.Mode().IsRegular() || info.Size() > openfile.MaxSize {
		return "", false
	}
	return f.Buffers.Read(ctx, real)
}

// open opens a regular file. It never waits for a pipe or a device.
func (f *Files) open(call Call, path string) (*os.File, fs.FileInfo, error) {
	real, err := f.locate(call, path)
	if err != nil {
		return nil, nil, err
	}
	// Through the directory that is at this real path now, or not at all: what the
	// path was checked for must not become another file by a link.
	if info, err := rootfs.Lstat(real); err == nil && !info.Mode().IsRegular() {
		return nil, nil, notRegular(info)
	}
	file, err := rootfs.Open(real)
	if err != nil {
		return nil, nil, plainError(err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, plainError(err)
	}
	return file, info, nil
}

func notRegular(info fs.FileInfo) error {
	if info.IsDir() {
		return errors.New("this is a directory: use list_files")
	}
	return errors.New("this is not a regular file")
}

// plainError is an error of the system without the call and the path, which the
// message names already.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// similarNames says which files of the directory have a name like that of a
// missing one.
func similarNames(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	base := strings.ToLower(filepath.Base(path))
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	var list []string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if name == base || len(stem) > 2 && strings.Contains(name, stem) {
			list = append(list, e.Name())
		}
	}
	if len(list) == 0 || len(list) > 5 {
		return ""
	}
	slices.Sort(list)
	return "; there is " + strings.Join(list, ", ")
}

// lookResult is the result of a call that only looked. Clients see it as a command.
func lookResult(ctx context.Context, call Call, argv []string, began time.Time, text string, err error) Result {
	if ctx.Err() != nil {
		return Result{Output: protocol.ToolOutput{Aborted: true}}
	}
	c := &protocol.CommandResult{Output: text, Elapsed: time.Since(began)}
	if err != nil {
		c.ExitCode, c.Output = 1, err.Error()
	}
	if err := call.Host.Record(ctx, &protocol.CommandStarted{Call: call.ID, Command: argv, Cwd: call.Settings.Cwd}); err != nil {
		return notRun(ctx, err)
	}
	return Result{Output: protocol.ToolOutput{Output: c.Output, Failed: err != nil, Command: c, Elapsed: c.Elapsed}}
}

// readSome reads at most n bytes, and reports whether there are more.
func readSome(r io.Reader, n int64) ([]byte, bool, error) {
	b, err := io.ReadAll(io.LimitReader(r, n+1))
	if int64(len(b)) > n {
		return b[:n], true, err
	}
	return b, false, err
}
