package catalogue

import "strings"

// An EditTool is how a model changes files best.
type EditTool string

// The ways to change files.
const (
	EditPatch   EditTool = "apply_patch" // one tool that takes a patch
	EditReplace EditTool = "edit"        // edit replaces a text, write makes a file
)

// A ShellTool is how a model runs commands best.
type ShellTool string

// The ways to run commands. Each takes the command as one string.
const (
	ShellExec ShellTool = "exec_command" // with write_stdin for commands that go on
	ShellBash ShellTool = "bash"
)

// A Family is a line of models that were trained alike.
type Family struct {
	Name     string // gpt-5, gpt, gpt-oss, claude, gemini, …; "other" if unknown
	Edit     EditTool
	Shell    ShellTool
	Freeform bool // takes tools whose input is held to a grammar, where the wire has them
}

// families are recognised by what a model's name begins with, without its vendor; the
// first that fits counts.
var families = []struct {
	prefixes []string
	family   Family
}{
	{[]string{"gpt-oss"}, Family{Name: "gpt-oss", Edit: EditReplace, Shell: ShellExec}},
	{[]string{"gpt-5", "codex"}, Family{Name: "gpt-5", Edit: EditPatch, Shell: ShellExec, Freeform: true}},
	{[]string{"gpt-4.1", "o1", "o3", "o4"}, Family{Name: "gpt", Edit: EditPatch, Shell: ShellExec}},
	{[]string{"gpt", "chatgpt"}, Family{Name: "gpt", Edit: EditReplace, Shell: ShellExec}},
	{[]string{"claude"}, Family{Name: "claude", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"gemini", "gemma"}, Family{Name: "gemini", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"qwen", "qwq", "qvq"}, Family{Name: "qwen", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"kimi", "moonshot"}, Family{Name: "kimi", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"glm", "zai-glm"}, Family{Name: "glm", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"deepseek"}, Family{Name: "deepseek", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"grok"}, Family{Name: "grok", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"mistral", "devstral", "magistral", "codestral", "labs-devstral"}, Family{Name: "mistral", Edit: EditReplace, Shell: ShellBash}},
	{[]string{"minimax"}, Family{Name: "minimax", Edit: EditReplace, Shell: ShellBash}},
}

// FamilyOf says which family a model belongs to, by its name.
func FamilyOf(id string) Family {
	name := strings.ToLower(id[strings.LastIndexByte(id, '/')+1:])
	for _, f := range families {
		for _, p := range f.prefixes {
			if strings.HasPrefix(name, p) || strings.Contains(name, "."+p) { // Bedrock: anthropic.claude-…
				return f.family
			}
		}
	}
	return Family{Name: "other", Edit: EditReplace, Shell: ShellBash}
}
