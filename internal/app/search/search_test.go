package search

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/engine"
)

func TestMatches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	if err := os.WriteFile(file, []byte(`{"body":{"text":"The \"Quick\" brown Fox"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := engine.Summary{Title: "Mend the parser", Cwd: "/src/App", FirstLine: "please", LastLine: "done", Path: file}
	for text, want := range map[string]bool{
		"parser": true, "PARSER": true, "src/app": true, "done": true, "brown fox": true, `"quick"`: true, "slow": false, "body\":": false,
	} {
		if got := Matches(s, text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	s.Path = ""
	if Matches(s, "fox") {
		t.Error("a journal that is no file was searched")
	}
}
