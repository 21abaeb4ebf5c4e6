package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes a home and a project; names that end in / are directories.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func TestInstructions(t *testing.T) {
	all := map[string]string{
		"home/AGENTS.md": "\n  global \n\n", "above/AGENTS.md": "never", "above/repo/.git/": "", "above/repo/AGENTS.md": "root\n",
		"above/repo/a/": "", "above/repo/a/b/AGENTS.md": "leaf", "above/repo/other/AGENTS.md": "never", "above/plain/x/AGENTS.md": "plain",
		"above/plain/AGENTS.md": "never", "above/linked/.git": "gitdir: elsewhere", "above/linked/sub/AGENTS.md": "worktree", "empty/": "",
		"above/blank/.git/": "", "above/blank/AGENTS.md": " \n\t\n",
	}
	const sep = "\n\n--- project-doc ---\n\n"
	for name, c := range map[string]struct {
		home, cwd string
		limit     int64
		text      string
		files     []string
	}{
		"home, root and leaf":   {"home", "above/repo/a/b", 1000, "global" + sep + "root\n\n\nleaf", []string{"home", "above/repo", "above/repo/a/b"}},
		"root only":             {"empty", "above/repo/a", 1000, "root\n", []string{"above/repo"}},
		"no repository":         {"home", "above/plain/x", 1000, "global" + sep + "plain", []string{"home", "above/plain/x"}},
		"no repository, none":   {"home", "empty", 1000, "global", []string{"home"}},
		"worktree":              {"empty", "above/linked/sub", 1000, "worktree", []string{"above/linked/sub"}},
		"blank":                 {"empty", "above/blank", 1000, "", nil},
		"blank, with a global":  {"home", "above/blank", 1000, "global", []string{"home"}},
		"off":                   {"home", "above/repo/a/b", 0, "global", []string{"home"}},
		"nothing":               {"empty", "empty", 1000, "", nil},
		"exactly as much":       {"empty", "above/repo/a/b", 9, "root\n\n\nleaf", []string{"above/repo", "above/repo/a/b"}},
		"a directory not there": {"empty", "above/repo/a/missing", 1000, "root\n", []string{"above/repo"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, all)
			docs, warnings := Instructions(filepath.Join(root, c.home), filepath.Join(root, c.cwd), c.limit)
			if got := unnamed(docs.Text); got != c.text {
				t.Errorf("got %q, want %q", got, c.text)
			}
			var want []string
			for _, f := range c.files {
				want = append(want, filepath.Join(root, f, "AGENTS.md"))
			}
			if diff := cmp.Diff(want, docs.Files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
		})
	}
}

// unnamed leaves out the names of files.
func unnamed(text string) string {
	return regexp.MustCompile(`From /[^\n]*:\n\n`).ReplaceAllString(text, "")
}

// Of several files each is named, since it holds for its own directory.
func TestInstructionsAreNamed(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/": "", "repo/AGENTS.md": "all", "repo/web/CLAUDE.md": "web only"})
	docs, _ := Instructions(filepath.Join(root, "none"), filepath.Join(root, "repo/web"), 1000, "CLAUDE.md")
	want := "From ROOT/repo/AGENTS.md:\n\nall\n\nFrom ROOT/repo/web/CLAUDE.md:\n\nweb only"
	if got := strings.ReplaceAll(docs.Text, root, "ROOT"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInstructionsAreCut(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/": "", "repo/AGENTS.md": "12345", "repo/a/AGENTS.md": "aé€😀z", "repo/a/b/AGENTS.md": "more"})
	const whole = "12345\n\naé€😀z\n\nmore"
	for limit, want := range map[int64]string{
		1: "1", 4: "1234", 5: "12345", 6: "12345\n\na", 7: "12345\n\na", 8: "12345\n\naé", 10: "12345\n\naé", 11: "12345\n\naé€", 14: "12345\n\naé€",
		15: "12345\n\naé€😀", 16: "12345\n\naé€😀z", 18: "12345\n\naé€😀z\n\nmo", 20: whole, 21: whole,
	} {
		docs, warnings := Instructions(root, filepath.Join(root, "repo/a/b"), limit)
		if got := unnamed(docs.Text); got != want {
			t.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
		if cut := want != whole; cut != (len(warnings) > 0) {
			t.Errorf("limit %d: warnings %v", limit, warnings)
		}
	}
	_, warnings := Instructions(root, filepath.Join(root, "repo/a/b"), 7)
	var got []string
	for _, w := range warnings {
		got = append(got, strings.ReplaceAll(w.String(), root, "ROOT"))
	}
	want := []string{
		"ROOT/repo/a/AGENTS.md: is too long: only 1 bytes of it are used",
		"ROOT/repo/a/b/AGENTS.md: is too long: only 0 bytes of it are used",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInstructionsFollowLinks(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/": "", "repo/AGENTS.md": "root", "repo/sub/": "", "repo/sub/CLAUDE.md": "linked"})
	for link, target := range map[string]string{"repo/sub/AGENTS.md": "CLAUDE.md", "shortcut": "repo/sub"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	docs, warnings := Instructions(root, filepath.Join(root, "shortcut"), 100)
	if unnamed(docs.Text) != "root\n\nlinked" || warnings != nil {
		t.Errorf("got %q %v", docs.Text, warnings)
	}
}
