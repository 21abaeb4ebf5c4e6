package composer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fixed(paths ...string) Lister {
	return func(context.Context) ([]string, error) { return paths, nil }
}

func TestFindRanks(t *testing.T) {
	f := NewFileFinder(fixed(
		"README.md", "cmd/app/main.go", "internal/main_test.go", "internal/domain/x.go", "docs/main/index.md",
		"main.go", "vendor/a/b/c/main.go", "src/MyApp.tsx", "漢字/メモ.txt",
	))
	for _, tc := range []struct {
		typed string
		want  []string
	}{
		{"main.go", []string{"main.go", "cmd/app/main.go", "vendor/a/b/c/main.go", "internal/main_test.go", "internal/domain/x.go"}},
		{"main", []string{
			"docs/main/", "main.go", "internal/main_test.go", "cmd/app/main.go", "vendor/a/b/c/main.go",
			"internal/domain/", "docs/main/index.md", "internal/domain/x.go",
		}},
		{"internal/", []string{"internal/", "internal/domain/", "internal/main_test.go", "internal/domain/x.go"}},
		{"./internal/d", []string{"internal/domain/", "internal/domain/x.go"}},
		{"cam", []string{"cmd/app/main.go", "docs/main/index.md"}}, // letters in their order
		{"myapp", []string{"src/MyApp.tsx"}},
		{"メ", []string{"漢字/メモ.txt"}},
		{"字モ", []string{"漢字/メモ.txt"}},
		{"nosuch", []string{}},
		{"\xff", []string{}},
	} {
		if diff := cmp.Diff(tc.want, f.Find(t.Context(), tc.typed)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.typed, diff)
		}
	}
	all := f.Find(t.Context(), "")
	if len(all) != 21 || all[0] != "cmd/" {
		t.Errorf("%d paths for nothing typed: %q", len(all), all)
	}
}

func TestFindIsBounded(t *testing.T) {
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("dir/file%d.go", i))
	}
	f := NewFileFinder(fixed(many...))
	if n := len(f.Find(t.Context(), "file")); n != maxFound {
		t.Errorf("%d paths, want %d", n, maxFound)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.Find(ctx, "file"); got != nil {
		t.Errorf("a search that nobody waits for found %d paths", len(got))
	}
}

func TestListersInTurn(t *testing.T) {
	broken := func(context.Context) ([]string, error) { return nil, errors.New("no repository") }
	if got := NewFileFinder(broken, fixed("a")).Find(t.Context(), "a"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("found %q", got)
	}
	if got := NewFileFinder(broken).Find(t.Context(), "a"); got != nil {
		t.Errorf("found %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := false
	NewFileFinder(func(context.Context) ([]string, error) {
		cancel()
		return nil, ctx.Err()
	}, func(context.Context) ([]string, error) {
		asked = true
		return nil, nil
	}).Find(ctx, "a")
	if asked {
		t.Error("the next lister was asked after the end")
	}
}

func TestListIsReadAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		f := NewFileFinder(func(context.Context) ([]string, error) {
			calls++
			return []string{fmt.Sprintf("file%d", calls)}, nil
		})
		f.Find(t.Context(), "f")
		time.Sleep(listingAge - time.Second)
		f.Find(t.Context(), "fi")
		if calls != 1 {
			t.Errorf("listed %d times, want once", calls)
		}
		time.Sleep(2 * time.Second)
		if got := f.Find(t.Context(), "f"); calls != 2 || got[0] != "file2" {
			t.Errorf("listed %d times, found %q", calls, got)
		}
	})
}

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.txt", "a/deep/er/c.txt", "a/d.txt", ".git/config", "node_modules/x/y.js", ".env", "a/.git/HEAD"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "a", "loop")); err != nil {
		t.Fatal(err)
	}
	got, err := Walk(dir, 100)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".env", "b.txt", "a/d.txt", "a/loop", "a/deep/er/c.txt"} // near ones first
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := Walk(dir, 3)(t.Context()); err != nil || len(got) != 3 {
		t.Errorf("%d files with a limit of 3, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Walk(dir, 100)(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if _, err := Walk(filepath.Join(dir, "nosuch"), 100)(t.Context()); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("error is %v", err)
	}
}

func BenchmarkFind50000(b *testing.B) {
	var many []string
	for i := range 50_000 {
		many = append(many, fmt.Sprintf("internal/package%d/some/file_number_%d.go", i%300, i))
	}
	f := &FileFinder{}
	l := newListing(many)
	l.at = time.Now().Add(time.Hour)
	f.last.Store(l)
	for b.Loop() {
		f.Find(b.Context(), "pkfn7")
	}
}
