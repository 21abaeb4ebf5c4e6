package skills

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/secrets"
)

func TestSkills(t *testing.T) {
	root := tree(t, map[string]string{
		"repo/.git/": "", "repo/sub/": "",
		"repo/.claude/skills/pdf/SKILL.md":      "---\nname: pdf\ndescription: >\n  Fill in\n  forms.\n---\nSteps",
		"repo/.agents/skills/none/SKILL.md":     "no description",
		"repo/sub/.codex/skills/deep/SKILL.md":  "---\ndescription: \"Deep one\"\n---\n",
		"home/skills/pdf/SKILL.md":              "---\nname: pdf\ndescription: Another.\n---\n",
		"home/skills/own/SKILL.md":              "---\nname: own\ndescription: Mine.\n---\n",
		"user/.claude/skills/theirs/SKILL.md":   "---\nname: theirs\ndescription: Of the user.\n---\n",
		"repo/.fermata/skills/broken/README.md": "",
		"secret":                                "---\nname: stolen\ndescription: key\n---\n",
	})
	if err := os.MkdirAll(filepath.Join(root, "repo/.agents/skills/link"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "secret"), filepath.Join(root, "repo/.agents/skills/link/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	list := Find(filepath.Join(root, "home"), filepath.Join(root, "user"), filepath.Join(root, "repo/sub"))
	var got []string
	for _, s := range list {
		rel, _ := filepath.Rel(root, s.File)
		got = append(got, s.Name+"|"+s.Description+"|"+rel)
	}
	want := []string{
		"deep|Deep one|repo/sub/.codex/skills/deep/SKILL.md", "pdf|Fill in forms.|repo/.claude/skills/pdf/SKILL.md",
		"own|Mine.|home/skills/own/SKILL.md", "theirs|Of the user.|user/.claude/skills/theirs/SKILL.md",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if text := Text(list); !strings.Contains(text, "\n- pdf: Fill in forms. (") || Text(nil) != "" {
		t.Errorf("told %q", text)
	}
}

func TestPrompts(t *testing.T) {
	root := tree(t, map[string]string{
		"repo/.git/": "", "repo/.claude/commands/review.md": "Review $1 for $FOCUS. It costs $$5; $HOME stays.", "repo/.fermata/prompts/home.md": "no",
		"home/prompts/home.md": "---\ndescription: Mine\nargument-hint: \"[FILE]\"\n---\nDo it.\n", "home/prompts/all.md": "Say: $ARGUMENTS", "home/prompts/x.txt": "no",
		"home/prompts/empty.md": "\n",
	})
	list := Prompts(filepath.Join(root, "home"), filepath.Join(root, "repo"))
	var names []string
	for _, f := range list {
		names = append(names, strings.TrimSpace(f.Name+" "+f.Arguments+" "+f.Description))
	}
	if d := cmp.Diff([]string{"all", "home [FILE] Mine", "review"}, names); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for line, want := range map[string]string{
		"/review a.go FOCUS=\"the races\"": "Review a.go for the races. It costs $5; $HOME stays.",
		"/home":                            "Do it.",
		"/home now":                        "Do it.\n\nnow",
		"/prompts:all a  b":                "Say: a  b",
	} {
		if got, ok := ExpandPrompt(list, line); got != want || !ok {
			t.Errorf("%s gives %q, %t, want %q", line, got, ok, want)
		}
	}
	if got, ok := ExpandPrompt(list, "/nothing at all"); ok || got != "/nothing at all" {
		t.Errorf("got %q, %t", got, ok)
	}
}

// tree makes files with these texts; a name that ends in a slash is a directory.
// A skill or a prompt of a project that is a link, or a second name, of a file with a secret in that project is left out.
func TestSkillsThatAreSecret(t *testing.T) {
	root := tree(t, map[string]string{
		"repo/.git/": "", "home/": "", "repo/.agents/skills/link/": "", "repo/.agents/skills/hard/": "", "repo/.claude/commands/": "",
		"repo/token": "---\nname: stolen\ndescription: sesame\n---\nsesame",
	})
	token := filepath.Join(root, "repo/token")
	if err := errors.Join(os.Symlink(token, filepath.Join(root, "repo/.agents/skills/link/SKILL.md")), os.Link(token, filepath.Join(root, "repo/.agents/skills/hard/SKILL.md")),
		os.Symlink(token, filepath.Join(root, "repo/.claude/commands/link.md"))); err != nil {
		t.Fatal(err)
	}
	found := func() int {
		return len(Find(filepath.Join(root, "home"), "", filepath.Join(root, "repo"))) + len(Prompts(filepath.Join(root, "home"), filepath.Join(root, "repo")))
	}
	if n := found(); n != 2 {
		t.Fatalf("before it is registered %d are found", n)
	}
	if err := secrets.Home(filepath.Join(root, "home")).Register(token); err != nil {
		t.Fatal(err)
	}
	if n := found(); n != 0 {
		t.Errorf("%d are found", n)
	}
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(root, name)
		dir := filepath.Dir(file)
		if strings.HasSuffix(name, "/") {
			dir = file
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir == file {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
