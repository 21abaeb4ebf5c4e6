package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Request is what a call asks for, as far as its arguments show it: the form of a call that has not
// begun, or that was refused before it could.
type Request struct {
	Command string   // as one would type it
	Files   []string // what is done to each, such as "update src/app.go"
}

var (
	commandTools = []string{"exec_command", "shell", "shell_command", "local_shell", "bash"}
	fileTools    = []string{"write", "edit"}

	patchMarks = []struct{ mark, verb string }{{"*** Add File: ", "add "}, {"*** Update File: ", "update "}, {"*** Delete File: ", "delete "}}
)

// RequestOf reads the arguments of a call. It is empty for calls that neither run a command nor change files.
func RequestOf(tool, arguments string) Request {
	var fields map[string]any
	_ = json.Unmarshal([]byte(arguments), &fields) // a patch may come as it is
	switch {
	case slices.Contains(commandTools, tool):
		return Request{Command: argument(fields, "cmd", "command")}
	case slices.Contains(fileTools, tool):
		if path := argument(fields, "path", "file_path"); path != "" {
			return Request{Files: []string{tool + " " + path}}
		}
	case tool == "apply_patch":
		text := argument(fields, "input", "patch")
		if fields == nil {
			text = arguments
		}
		return Request{Files: patchedFiles(text)}
	}
	return Request{}
}

// RequestLine is what a call asks for in one line; empty if that is not known.
func RequestLine(tool, arguments string) string {
	r := RequestOf(tool, arguments)
	line := strings.Join(r.Files, ", ")
	if tool == "apply_patch" && line != "" {
		return tool + " " + line
	}
	return cmp.Or(r.Command, line)
}

func patchedFiles(text string) (files []string) {
	for line := range strings.Lines(text) {
		for _, m := range patchMarks {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), m.mark); ok {
				files = append(files, m.verb+path)
			}
		}
	}
	return files
}

// argument is a text among the arguments of a call, by the first of its names that is there.
func argument(fields map[string]any, names ...string) string {
	for _, name := range names {
		switch v := fields[name].(type) {
		case string:
			return v
		case []any:
			var words []string
			for _, w := range v {
				words = append(words, fmt.Sprint(w))
			}
			return CommandLine(words)
		}
	}
	return ""
}
