package runcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/stdin"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// An input is what a run of exec is given.
type input struct {
	content []p.Content
	schema  json.RawMessage // nil if none is wanted
}

// input reads prompt, images and schema, before anything is begun.
func (f *execFlags) input(s cli.Streams, a []string) (in input, err error) {
	if in.schema, err = readSchema(f.schema); err != nil {
		return in, err
	}
	for _, name := range ImageFiles(f.images) {
		image, err := tool.ReadImage(name)
		if err != nil {
			return in, err
		}
		in.content = append(in.content, image)
	}
	if f.now {
		if len(a) > 0 || len(in.content) > 0 || f.schema != "" {
			return in, cli.Usagef("--now tries the turn again that waits; it takes no prompt")
		}
		return in, nil
	}
	if f.returned && len(a) == 0 { // those are enough
		return in, nil
	}
	prompt, err := readPrompt(s, a)
	in.content = append(in.content, p.Text(prompt)...)
	return in, err
}

var errNoPrompt = errors.New("no prompt: give one as an argument or on stdin")

// readPrompt takes the prompt from the argument, or from stdin. If there are
// both, what is on stdin is put behind the argument.
func readPrompt(s cli.Streams, a []string) (string, error) {
	if len(a) == 0 || a[0] == "-" {
		if cli.Terminal(s.In) {
			return "", cli.Usagef("%w", errNoPrompt)
		}
		text, err := s.ReadText()
		if err == nil && text == "" {
			err = &cli.ExitError{Code: cli.ExitFailed, Err: errNoPrompt}
		}
		return text, err
	}
	if strings.TrimSpace(a[0]) == "" {
		return "", &cli.ExitError{Code: cli.ExitFailed, Err: errNoPrompt}
	}
	if !utf8.ValidString(a[0]) {
		return "", stdin.ErrNotText
	}
	if !s.Piped() {
		return a[0], nil
	}
	more, err := readBeside(s)
	if err != nil || more == "" {
		return a[0], err
	}
	return a[0] + "\n\n<stdin>\n" + more + "\n</stdin>", nil
}

// readBeside reads all of stdin beside a prompt, if something comes.
func readBeside(s cli.Streams) (string, error) {
	text, came, err := stdin.ReadBeside(s.In, s.ReportWaiting)
	if err == nil && !came {
		fmt.Fprintln(s.Err, "fermata: nothing was written to stdin: continuing without it")
	}
	return text, err
}

// ImageFiles takes lists of files apart. A file may have a comma in its name.
func ImageFiles(lists []string) (files []string) {
	for _, list := range lists {
		if _, err := os.Stat(list); err == nil {
			files = append(files, list)
			continue
		}
		files = append(files, strings.Split(list, ",")...)
	}
	return files
}

// readSchema reads the JSON schema that the answer shall follow.
func readSchema(name string) (json.RawMessage, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil || object == nil {
		return nil, fmt.Errorf("output schema %s: not a JSON object", name)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// checkAnswerFile reports that the answer could not be written to a file, before a turn is run for it. The
// file is not made yet: only a turn that completes has an answer.
func checkAnswerFile(name string) error {
	if name == "" {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		err = unix.EISDIR
	case err == nil:
		err = unix.Access(name, unix.W_OK)
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(name)
		if err = unix.Access(dir, unix.W_OK|unix.X_OK); errors.Is(err, unix.ENOENT) {
			return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("-o %s: there is no directory %s", name, dir)}
		}
	}
	if err != nil {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("-o %s: the answer could not be written: %w", name, err), Hint: "name another file"}
	}
	return nil
}
