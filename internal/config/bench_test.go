package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func BenchmarkLoad(b *testing.B) {
	empty, full := b.TempDir(), b.TempDir()
	a, err := txtar.ParseFile("testdata/show.txtar")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, FileName), a.Files[0].Data, 0o600); err != nil {
		b.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no file":             {Home: empty},
		"no file, as the SDK": {Home: empty, Overrides: []string{`approval_policy="never"`, `web_search="live"`, `openai_base_url="http://127.0.0.1/v1"`}},
		"file of 50 lines":    {Home: full, Profile: "fast"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Load(o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSchema is what the first Load of a process does in addition.
func BenchmarkSchema(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newSchema()
	}
}
