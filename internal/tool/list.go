package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/git"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// List names the files of a directory.
type List struct{ Files *Files }

const (
	listDepth   = 2
	listEntries = 1000
)

var listSchema = &args.Schema{
	Tool: "list_files", Bare: "path", Example: `{"path":"src","pattern":"*.go"}`,
	Params: []args.Param{
		{Name: "path", Type: args.String, Description: "The directory. Default: the working directory.", Aliases: append([]string{"dir", "directory", "dir_path"}, pathNames...)},
		{Name: "pattern", Type: args.String, Description: `Only files that fit this glob, such as "*.go" or "src/**/*.ts", at any depth.`, Aliases: []string{"glob", "include"}},
		{Name: "depth", Type: args.Number, Description: "How many levels of directories to list. Default: 2; with a pattern, all.", Aliases: []string{"max_depth"}},
		{Name: "recursive", Type: args.Boolean, Hidden: true},
	},
}

// Spec describes the tool to the model.
func (l *List) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "list_files", Kind: protocol.CallFunction,
		Description: listSchema.Describe("Lists the files and directories below a directory, leaving out what .gitignore names. Directories end with a slash."),
		Parameters:  listSchema.JSON(),
	}
}

// ReadOnly reports that directories may be listed side by side.
func (l *List) ReadOnly() bool { return true }

// Run lists the directory of one call.
func (l *List) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(listSchema)
	if wrong != nil {
		return *wrong
	}
	dir, pattern := v.String("path"), v.String("pattern")
	if dir == "" {
		dir = "."
	}
	depth := int(v.Number("depth", listDepth))
	if !v.Has("depth") && (pattern != "" || v.Bool("recursive", false)) {
		depth = 100
	}
	argv := []string{"ls", dir}
	if pattern != "" {
		argv = []string{"rg", "--files", "-g", pattern, dir}
	}
	began := time.Now()
	text, err := l.list(ctx, call, dir, pattern, max(1, depth))
	return lookResult(ctx, call, argv, began, text, err)
}

func (l *List) list(ctx context.Context, call Call, dir, pattern string, depth int) (string, error) {
	root, err := l.Files.directory(call, dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	n, more := 0, false
	err = walk(ctx, root, depth, func(rel string, d fs.DirEntry) error {
		if pattern != "" && (d.IsDir() || !git.MatchesGlob(pattern, rel)) {
			return nil
		}
		if n == listEntries || b.Len()+len(rel) > defaultBytes {
			more = true
			return fs.SkipAll
		}
		n++
		b.WriteString(rel)
		if d.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, plainError(err))
	}
	switch {
	case more:
		fmt.Fprintf(&b, "[There is more. Name a directory below, or give a pattern.]\n")
	case n == 0:
		return "(no files)", nil
	}
	return b.String(), nil
}

// directory returns the real path of a directory.
func (f *Files) directory(call Call, dir string) (string, error) {
	root, err := f.locate(call, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: there is no such directory%s", dir, similarNames(within(call.Settings.Cwd, dir)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s: this is not a directory", dir)
	}
	return root, nil
}

// walk visits what is below a directory, nearest first, without what git ignores.
// Symbolic links are not followed, and directories that cannot be read are left out.
func walk(ctx context.Context, root string, depth int, visit func(rel string, d fs.DirEntry) error) error {
	type level struct {
		rel   string
		rules *git.Ignorer
	}
	queue := []level{{"", git.Ignoring(root)}}
	for ; depth > 0 && len(queue) > 0; depth-- {
		var next []level
		for _, at := range queue {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			entries, err := os.ReadDir(filepath.Join(root, at.rel))
			if err != nil && at.rel == "" {
				return err
			}
			for _, e := range entries {
				rel := filepath.Join(at.rel, e.Name())
				full := filepath.Join(root, rel)
				if e.Name() == ".git" || at.rules.Ignored(full, e.IsDir()) {
					continue
				}
				switch err := visit(rel, e); {
				case errors.Is(err, fs.SkipAll):
					return nil
				case err != nil:
					return err
				}
				if e.IsDir() {
					next = append(next, level{rel, at.rules.Within(full)})
				}
			}
		}
		queue = next
	}
	return nil
}
