package tool

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/turn"
)

// A hidden tool is one that the model is not sent.
type hidden struct{ Tool }

// Hidden returns a tool that is carried out when a model calls it, but not offered.
func Hidden(t Tool) Tool { return hidden{t} }

// Offered returns what the model is sent of a list of tools.
func Offered(list []Tool) []model.ToolSpec {
	var specs []model.ToolSpec
	for _, t := range list {
		if _, ok := t.(hidden); ok {
			continue
		}
		if spec := t.Spec(); spec.Name != turn.UserShell { // the user's own
			specs = append(specs, spec)
		}
	}
	return specs
}

// aliases are names that models know from elsewhere, and what they mean here.
var aliases = map[string]string{
	"container.exec": "shell", "local_shell": "shell",
	"bash": "exec_command", "sh": "exec_command", "shell_command": "exec_command", "run_shell_command": "exec_command",
	"run_command": "exec_command", "run_terminal_cmd": "exec_command", "execute_command": "exec_command", "terminal": "exec_command",
	"applypatch": "apply_patch", "patch": "apply_patch",
	"str_replace": "edit", "edit_file": "edit", "replace": "edit", "search_replace": "edit", "replace_in_file": "edit",
	"str_replace_editor": "str_replace_based_edit_tool", "str_replace_edit_tool": "str_replace_based_edit_tool", "text_editor": "str_replace_based_edit_tool", "multiedit": "multi_edit",
	"write_file": "write", "create_file": "write", "write_to_file": "write",
	"read": "read_file", "cat": "read_file", "view": "read_file", "view_file": "read_file", "open_file": "read_file",
	"ls": "list_files", "list": "list_files", "list_dir": "list_files", "list_directory": "list_files", "glob": "list_files", "find_files": "list_files",
	"search": "grep", "rg": "grep", "ripgrep": "grep", "grep_files": "grep", "grep_search": "grep", "search_files": "grep", "search_file_content": "grep",
	"todo_write": "update_plan", "todowrite": "update_plan", "plan": "update_plan",
	"fetch": "web_fetch", "webfetch": "web_fetch", "fetch_url": "web_fetch",
}

// Find returns the tool that a model means by a name, nil if there is none. The
// exact name counts first; then case, the separators of words, and what services put
// around a name do not matter; then names from elsewhere are understood.
func Find(list []Tool, name string) Tool {
	if t := exactly(list, name); t != nil {
		return t
	}
	plain := plainName(name)
	if t := exactly(list, plain); t != nil {
		return t
	}
	return exactly(list, aliases[plain])
}

func exactly(list []Tool, name string) Tool {
	for _, t := range list {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// plainName is a name as tools spell theirs: "functions.Shell<|channel|>commentary"
// is "shell", and "ReadFile" is "read_file".
func plainName(name string) string {
	name, _, _ = strings.Cut(name, "<|")
	name = strings.Trim(name, " \t\r\n\"'`()")
	for _, prefix := range []string{"functions.", "functions:", "functions/", "tools.", "default_api.", "default_api:", "repo_browser."} {
		name = strings.TrimPrefix(name, prefix)
	}
	var b strings.Builder
	low := false // the last character was a small letter
	for _, r := range name {
		switch {
		case r == '-' || r == ' ':
			r = '_'
		case unicode.IsUpper(r) && low:
			b.WriteByte('_')
		}
		low = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Unknown is the answer to a call of a tool that there is not.
func Unknown(list []Tool, name string) string {
	var names []string
	for _, s := range Offered(list) {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("unsupported call: %s. There are no tools in this conversation.", name)
	}
	return fmt.Sprintf("unsupported call: %s. The tools are: %s.", name, strings.Join(names, ", "))
}
