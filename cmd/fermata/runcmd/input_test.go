package runcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file for the answer that cannot be written is reported before the turn, and none is made by looking.
func TestAnswerFileIsCheckedFirst(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":                              "",
		there:                           "",
		"/dev/null":                     "",
		filepath.Join(dir, "new"):       "",
		"new":                           "",
		dir:                             "is a directory",
		filepath.Join(dir, "no", "new"): "there is no directory",
		filepath.Join(there, "new"):     "not a directory",
	} {
		err := checkAnswerFile(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if text, _ := os.ReadFile(there); string(text) != "old" {
		t.Errorf("the file has %q", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made")
	}
}
