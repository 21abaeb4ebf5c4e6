package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestApply(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	file := filepath.Join(home, config.FileName)
	trust := Edit{[]string{"projects", "/w", "trust_level"}, "trusted"}
	if err := Apply(home, trust); err != nil {
		t.Fatal(err)
	}
	const first = "[projects.\"/w\"]\ntrust_level = \"trusted\"\n"
	if got := readFile(t, file); got != first {
		t.Errorf("a new file: %q", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode: %v, %v", info.Mode(), err)
	}

	// A link stays one, and the mode of what it leads to stays.
	elsewhere := filepath.Join(t.TempDir(), "dotfile")
	if err := os.WriteFile(elsewhere, []byte("# mine\n"+first), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Remove(file)
	if err := os.Symlink(elsewhere, file); err != nil {
		t.Fatal(err)
	}
	if err := Apply(home, Edit{trust.Path, nil}, Edit{[]string{"model"}, "m"}); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, elsewhere); got != "model = \"m\"\n\n# mine\n[projects.\"/w\"]\n" {
		t.Errorf("behind a link: %q", got)
	}
	if info, _ := os.Lstat(file); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o644 {
		t.Errorf("its mode: %v", info.Mode())
	}
}

// An edit that fails, or that makes no valid configuration, changes nothing.
func TestApplyRefusals(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, config.FileName)
	for _, tt := range []struct {
		text string
		edit Edit
		want string
	}{
		{"# x\n", Edit{[]string{"sandbox_mode"}, "wide-open"}, "sandbox_mode: must be one of"},
		{"not = \n", Edit{[]string{"model"}, "m"}, "not TOML"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Apply(home, Edit{[]string{"notify"}, []string{"x"}}, tt.edit)
		if err == nil || !strings.Contains(err.Error(), tt.want) || readFile(t, file) != tt.text {
			t.Errorf("%q: %v, then %q", tt.text, err, readFile(t, file))
		}
	}
	if list, _ := filepath.Glob(filepath.Join(home, ".new-*")); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}

// Edits at the same time are all made.
func TestApplyTogether(t *testing.T) {
	home := t.TempDir()
	var all sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		all.Go(func() {
			if err := Apply(home, Edit{[]string{"projects", "/" + name, "trust_level"}, "trusted"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := strings.Count(readFile(t, filepath.Join(home, config.FileName)), "trusted"); n != 8 {
		t.Errorf("%d of 8 are there", n)
	}
}
