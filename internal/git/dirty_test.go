package git

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// changes are what may happen to a working tree between two looks at it.
var changes = []func(s *site, r *rand.Rand){
	func(s *site, r *rand.Rand) {
		name := s.some(r)
		os.Remove(name)
		s.write(name, fmt.Sprintln(r.IntN(3)))
	},
	func(s *site, r *rand.Rand) { os.Remove(s.some(r)) },
	func(s *site, _ *rand.Rand) { s.plain(s.root, "add", "-A") },
	func(s *site, _ *rand.Rand) { s.plain(s.root, "commit", "-q", "--allow-empty", "-a", "-m", "next") },
	func(s *site, _ *rand.Rand) {
		s.plain(s.root, "add", "-A")
		s.plain(s.root, "commit", "-q", "--allow-empty", "-m", "all")
	},
	func(s *site, _ *rand.Rand) { s.plain(s.root, "reset", "-q", "--hard") },
	func(s *site, _ *rand.Rand) {
		s.plain(s.root, "pack-refs", "--all")
		s.plain(s.root, "repack", "-q", "-a", "-d")
	},
	func(s *site, _ *rand.Rand) { s.plain(s.root, "update-index", "-q", "--refresh") },
	func(s *site, r *rand.Rand) { os.Chmod(s.some(r), 0o644|os.FileMode(r.IntN(2)*0o111)) },
	func(s *site, r *rand.Rand) {
		s.write(filepath.Join(s.root, ".gitignore"), []string{"x.o\n", "*.o\n/dir/sub\n", "dir/\n!x.o\n"}[r.IntN(3)])
	},
	func(s *site, r *rand.Rand) { name := s.some(r); os.Remove(name); os.Symlink("a", name) },
	func(s *site, _ *rand.Rand) {
		s.plain(s.root, "rm", "-q", "-f", "--cached", "-r", "--ignore-unmatch", ".")
	},
}

// some is a file that may be there.
func (s *site) some(r *rand.Rand) string {
	names := []string{"a", "b", "x.o", "dir/c", "dir/sub/d", "dir/sub/x.o"}
	return filepath.Join(s.root, names[r.IntN(len(names))])
}

// Dirty says what git says, and mostly without it.
func TestDirtyIsWhatGitSays(t *testing.T) {
	s := newSite(t)
	t.Setenv("XDG_CONFIG_HOME", s.dir)
	t.Setenv("HOME", s.dir)
	r := rand.New(rand.NewPCG(1, 2))
	sure, rounds := map[bool]int{}, longtest.Default(120, 40)
	for i := range rounds {
		for range 1 + r.IntN(3) {
			changes[r.IntN(len(changes))](s, r)
		}
		want := s.plain(s.root, "--no-optional-locks", "status", "--porcelain") != ""
		l, err := Find(s.root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&look{Location: l, ctx: t.Context()}).dirty()
		if errors.Is(err, errUncommon) {
			continue
		}
		if sure[got]++; err != nil || got != want {
			t.Fatalf("round %d: %v, %v; git says %v:\n%s", i, got, err, want, s.plain(s.root, "status"))
		}
	}
	if sure[true] < rounds/4 || sure[false] < rounds/8 {
		t.Errorf("of %d rounds %d were known to be dirty and %d not to be", rounds, sure[true], sure[false])
	}
}

// What only git can tell is asked of git.
func TestDirtyAsksGit(t *testing.T) {
	for name, change := range map[string]func(s *site){
		"settings":   func(s *site) { s.plain(s.root, "config", "core.autocrlf", "true") },
		"attributes": func(s *site) { s.write(filepath.Join(s.root, ".gitattributes"), "*.c text\n") },
		"the user's": func(s *site) { s.write(filepath.Join(s.dir, "gitconfig"), "[core]\n\texcludesFile = x\n") },
		"an index":   func(s *site) { s.plain(s.root, "update-index", "--index-version", "4") },
		"a flag":     func(s *site) { s.plain(s.root, "update-index", "--assume-unchanged", "a") },
		"submodules": func(s *site) {
			s.plain(s.root, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			t.Setenv("XDG_CONFIG_HOME", s.dir)
			t.Setenv("HOME", s.dir)
			look := look{Location: Location{Root: s.root, Dir: filepath.Join(s.root, ".git"), Common: filepath.Join(s.root, ".git")}, ctx: t.Context()}
			if _, err := look.dirty(); err != nil {
				t.Fatalf("not even without: %v", err)
			}
			change(s)
			again := look
			if dirty, err := again.dirty(); err == nil {
				t.Errorf("%v without asking", dirty)
			}
			dirty, err := Dirty(t.Context(), Options{Dir: s.root, Scratch: s.scratch})
			if err != nil {
				t.Fatal(err)
			}
			if want := s.plain(s.root, "status", "--porcelain", "--ignore-submodules=all") != ""; dirty != want {
				t.Errorf("%v, want %v", dirty, want)
			}
		})
	}
}

// A damaged index is no reason to crash: cut anywhere, or with any byte changed, it is read or refused.
func TestDamagedIndex(t *testing.T) {
	s := newSite(t)
	data, err := os.ReadFile(filepath.Join(s.root, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		_ = (&index{names: map[string]bool{}}).parse(data[:i])
		for _, b := range []byte{0, 1, 0x7f, 0xff} {
			damaged := append([]byte(nil), data...)
			damaged[i] = b
			_ = (&index{names: map[string]bool{}}).parse(damaged)
		}
	}
	if err := (&index{names: map[string]bool{}}).parse(data); err != nil {
		t.Error(err)
	}
}
