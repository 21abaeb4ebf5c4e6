package convert

import (
	"encoding/json"
	"strings"
)

// ourTools are the tools of other agents that we have under another name, in lower case, and what their
// arguments are called here.
var ourTools = map[string]struct {
	name      string
	arguments map[string]string
}{
	"bash":                {"exec_command", commandNames},
	"run_shell_command":   {"exec_command", commandNames},
	"read":                {"read_file", pathNames},
	"read_file":           {"read_file", pathNames},
	"edit":                {"edit", pathNames},
	"replace":             {"edit", pathNames},
	"write":               {"write", pathNames},
	"write_file":          {"write", pathNames},
	"grep":                {"grep", pathNames},
	"search_file_content": {"grep", pathNames},
	"glob":                {"list_files", pathNames},
	"list":                {"list_files", pathNames},
	"ls":                  {"list_files", pathNames},
	"list_directory":      {"list_files", pathNames},
	"todowrite":           {"update_plan", nil},
	"webfetch":            {"web_fetch", nil},
}

var (
	commandNames = map[string]string{"command": "cmd", "directory": "workdir"}
	pathNames    = map[string]string{
		"file_path": "path", "filePath": "path", "absolute_path": "path", "dir_path": "path",
		"old_string": "old_text", "oldString": "old_text", "new_string": "new_text", "newString": "new_text",
		"replaceAll": "replace_all", "include": "glob",
	}
)

// translate returns a call of another agent's tool as a call of ours, where we have one; others stay as they are.
func translate(name, arguments string) (string, string) {
	t, ok := ourTools[strings.ToLower(name)]
	if !ok {
		return name, arguments
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return t.name, arguments
	}
	renamed := make(map[string]json.RawMessage, len(members))
	for k, v := range members {
		if to, ok := t.arguments[k]; ok {
			k = to
		}
		renamed[k] = v
	}
	out, err := json.Marshal(renamed)
	if err != nil {
		return t.name, arguments
	}
	return t.name, string(out)
}
