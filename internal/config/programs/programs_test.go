package programs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a server or notify executes is known, so that commands can be kept from it.
func TestPrograms(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	for name, mode := range map[string]os.FileMode{
		filepath.Join(bin, "python3"): 0o755, filepath.Join(dir, "server"): 0o755, filepath.Join(dir, "server.py"): 0o644, filepath.Join(dir, "hook.JS"): 0o644,
		filepath.Join(dir, "data.db"): 0o644, filepath.Join(dir, "plain"): 0o644,
	} {
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"python3 server.py":             "python3 server.py",
		"python3 -u " + dir + "/server": "python3 server",
		"./server --db data.db":         "server",
		"plain/../plain":                "plain",
		"python3 --require=hook.JS .":   "python3 hook.JS",
		"missing gone.py " + dir:        "",
	} {
		argv := strings.Fields(line)
		var got []string
		for _, name := range Of(argv, dir) {
			got = append(got, filepath.Base(name))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	list := Of([]string{"python3", filepath.Join(dir, "server.py"), "server.py"}, "")
	if !slices.Equal(list, []string{filepath.Join(bin, "python3"), filepath.Join(dir, "server.py")}) {
		t.Errorf("without a directory: %q", list)
	}
}
