package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// Read returns lines of a file, or of the recorded output of a command.
type Read struct{ Files *Files }

const (
	readLines   = 2000 // unless the call says otherwise
	maxLineShow = 2000 // bytes of a line
)

var readSchema = &args.Schema{
	Tool: "read_file", Bare: "path", Example: `{"path":"src/app.go","offset":120,"limit":80}`,
	Params: []args.Param{
		{Name: "path", Type: args.String, Required: true, Description: "The file, relative to the working directory or absolute.", Aliases: pathNames},
		{Name: "offset", Type: args.Number, Description: "The first line to read, counted from 1. Default: 1.", Aliases: []string{"start_line", "line", "start", "from"}},
		{Name: "limit", Type: args.Number, Description: "How many lines to read. Default: 2000.", Aliases: []string{"lines", "count", "num_lines"}},
		{Name: "end_line", Type: args.Number, Hidden: true, Aliases: []string{"end", "to"}},
	},
}

// Spec describes the tool to the model.
func (r *Read) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "read_file", Kind: protocol.CallFunction,
		Description: readSchema.Describe("Reads a text file. Each line of the result begins with its number and a tab. " +
			"Long files are truncated at 40 kB: continue with offset. Several files can be read in one response."),
		Parameters: readSchema.JSON(),
	}
}

// ReadOnly reports that files may be read side by side.
func (r *Read) ReadOnly() bool { return true }

// Run reads the lines of one call.
func (r *Read) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(readSchema)
	if wrong != nil {
		return *wrong
	}
	path := v.String("path")
	if path == "" {
		return failure(readSchema.Error("the path is empty"))
	}
	first := max(1, int(v.Number("offset", 1)))
	limit := int(v.Number("limit", readLines))
	if v.Has("end_line") && !v.Has("limit") {
		limit = int(v.Number("end_line", 0)) - first + 1
	}
	if limit < 1 {
		return failure(readSchema.Error("the limit must be at least 1"))
	}
	began := time.Now()
	var text string
	var err error
	if id, ok := strings.CutPrefix(path, outputPath); ok {
		text, err = r.output(ctx, call, id, first, limit)
	} else {
		text, err = r.file(ctx, call, path, first, limit)
	}
	argv := []string{"cat", path}
	if first > 1 || v.Has("limit") || v.Has("end_line") {
		argv = []string{"sed", "-n", fmt.Sprintf("%d,%dp", first, first+limit-1), path}
	}
	return lookResult(ctx, call, argv, began, text, err)
}

// file reads lines of a file.
func (r *Read) file(ctx context.Context, call Call, path string, first, limit int) (string, error) {
	f, info, err := r.Files.open(call, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: there is no such file%s", path, similarNames(within(call.Settings.Cwd, path)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if text, ok := r.Files.buffer(ctx, call, path); ok {
		return numbered(ctx, bufio.NewReader(strings.NewReader(text)), path, first, limit)
	}
	b := bufio.NewReaderSize(f, 64<<10)
	if start, _ := b.Peek(8000); bytes.IndexByte(start, 0) >= 0 {
		return "", fmt.Errorf("%s: this is a binary file of %d bytes", path, info.Size())
	}
	return numbered(ctx, b, path, first, limit)
}

// output reads lines of what a command of this conversation has printed.
func (r *Read) output(ctx context.Context, call Call, id string, first, limit int) (string, error) {
	item, err := protocol.ParseItemID(id)
	if err != nil {
		return "", fmt.Errorf("%s%s: there is no such output", outputPath, id)
	}
	text, err := call.Host.Output(ctx, item)
	if err != nil {
		return "", fmt.Errorf("%s%s: %w", outputPath, id, err)
	}
	return numbered(ctx, bufio.NewReader(strings.NewReader(text)), outputPath+id, first, limit)
}

// numbered returns lines with their numbers, as many as fit.
func numbered(ctx context.Context, r *bufio.Reader, path string, first, limit int) (string, error) {
	var b strings.Builder
	n := 1
	for ; n < first+limit; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		line, length, err := readLine(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, plainError(err))
		}
		if n < first {
			continue
		}
		text := strings.ToValidUTF8(line, "\uFFFD")
		if length > len(line) {
			text += fmt.Sprintf(" [... %d of %d bytes of this line omitted ...]", length-len(line), length)
		}
		if b.Len()+len(text) > defaultBytes && b.Len() > 0 {
			break
		}
		fmt.Fprintf(&b, "%6d\t%s\n", n, text)
	}
	switch _, err := r.Peek(1); {
	case b.Len() == 0 && n == 1:
		return "(the file is empty)", nil
	case b.Len() == 0:
		return "", fmt.Errorf("%s has only %s", path, humanize.Count(n-1, "line"))
	case err == nil || n < first+limit && b.Len() > defaultBytes-maxLineShow-100:
		fmt.Fprintf(&b, "[More lines follow. Read on with offset %d.]\n", n)
	}
	return b.String(), nil
}

// readLine returns the beginning of the next line, without its line end, and its
// whole length. After the last line it returns io.EOF.
func readLine(r *bufio.Reader) (string, int, error) {
	var line []byte
	length := 0
	for {
		part, err := r.ReadSlice('\n')
		length += len(part)
		if room := maxLineShow + 1 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (length == 0 || !errors.Is(err, io.EOF)):
			return "", 0, err
		}
		if line[len(line)-1] == '\n' {
			line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
			return string(line), len(line), nil
		}
		if len(line) > maxLineShow {
			line = line[:maxLineShow]
		}
		return string(line), length, nil
	}
}
