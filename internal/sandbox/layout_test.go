package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
	"github.com/google/go-cmp/cmp"
)

// tree makes files and directories below a new directory. A name that ends in a
// slash is a directory; "a -> b" is a symbolic link; others are files with the
// given text after a colon.
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for _, e := range entries {
		if name, target, ok := strings.Cut(e, " -> "); ok {
			check(t, os.Symlink(strings.ReplaceAll(target, "$", base), filepath.Join(base, name)))
			continue
		}
		name, text, _ := strings.Cut(e, ":")
		full := filepath.Join(base, name)
		if strings.HasSuffix(name, "/") {
			check(t, os.MkdirAll(full, 0o755))
			continue
		}
		check(t, os.MkdirAll(filepath.Dir(full), 0o755))
		check(t, os.WriteFile(full, []byte(strings.ReplaceAll(text, "$", base)), 0o644))
	}
	return base
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// view is a layout with names relative to its base.
type view struct {
	Roots, Own, Protected, Missing, Binds, Notes []string
}

func viewOf(l *layout, base string) view {
	short := func(list []string) []string {
		var all []string
		for _, s := range list {
			all = append(all, strings.ReplaceAll(strings.ReplaceAll(s, base+"/", ""), base, "."))
		}
		return all
	}
	var binds []string
	for _, b := range l.binds() {
		if b.Write {
			binds = append(binds, string(b.Path))
		} else {
			binds = append(binds, "ro "+string(b.Path))
		}
	}
	return view{short(l.roots), short(l.own), short(l.protected), short(l.missing), short(binds), short(l.notes)}
}

var layouts = []struct {
	name    string
	entries []string
	cwd     string
	roots   []string
	home    string
	tmp     string
	want    view
}{
	{
		name: "plain", entries: []string{"ws/"}, cwd: "ws",
		want: view{Roots: []string{"ws"}, Own: []string{"ws"}, Missing: []string{"ws/.git"}, Binds: []string{"ws"}},
	},
	{
		name: "repository", entries: []string{"ws/.git/"}, cwd: "ws",
		want: view{Roots: []string{"ws"}, Own: []string{"ws"}, Protected: []string{"ws/.git"}, Binds: []string{"ws", "ro ws/.git"}},
	},
	{
		name: "roots through links", entries: []string{"real/", "other/", "link -> real", "dir -> .", "ws/"}, cwd: "ws",
		roots: []string{"link", "dir/other", "real"},
		want: view{
			Roots: []string{"ws", "real", "other"}, Own: []string{"ws", "real", "other"},
			Missing: []string{"ws/.git", "real/.git", "other/.git"}, Binds: []string{"other", "real", "ws"},
		},
	},
	{
		name: "a root that a command has made a link", entries: []string{"ws/", "secret/", "ws/build -> $/secret"}, cwd: "ws",
		roots: []string{"ws/build"},
		want: view{
			Roots: []string{"ws"}, Own: []string{"ws"}, Missing: []string{"ws/.git"}, Binds: []string{"ws"},
			Notes: []string{"writable root ws/build stays read-only: it leads to secret through a link in ws, where commands can write"},
		},
	},
	{
		name: "a working directory that a command has made a link", entries: []string{"tmp/", "secret/", "tmp/ws -> $/secret"},
		cwd: "tmp/ws", tmp: "tmp",
		want: view{
			Roots: []string{"tmp"}, Binds: []string{"tmp"},
			Notes: []string{"working directory tmp/ws stays read-only: it leads to secret through a link in tmp, where commands can write"},
		},
	},
	{
		name: "roots that are none", entries: []string{"ws/", "home/"}, cwd: "ws", home: "home",
		roots: []string{"missing", "=relative", "=/", "=/proc", "=/dev/shm", "home", "=/sys/kernel"},
		want: view{
			Roots: []string{"ws"}, Own: []string{"ws"}, Missing: []string{"ws/.git"}, Binds: []string{"ws"},
			Notes: []string{
				"writable root missing stays read-only: it does not exist",
				"writable root relative stays read-only: it is not an absolute path",
				"writable root / stays read-only: it is the whole file system",
				"writable root /proc stays read-only: /proc belongs to the system",
				"writable root /dev/shm stays read-only: /dev belongs to the system",
				"writable root home stays read-only: it belongs to fermata",
				"writable root /sys/kernel stays read-only: /sys belongs to the system",
			},
		},
	},
	{
		name: "home inside", entries: []string{"ws/a/b/home/"}, cwd: "ws", home: "ws/a/b/home",
		want: view{
			Roots: []string{"ws"}, Own: []string{"ws"}, Protected: []string{"ws/a/b/home"}, Missing: []string{"ws/.git"},
			Binds: []string{"ws", "ws/a", "ws/a/b", "ro ws/a/b/home"},
		},
	},
	{
		name: "every name on the way is fixed", entries: []string{"tmp/x/ws/.git/"}, cwd: "tmp/x/ws", tmp: "tmp",
		want: view{
			Roots: []string{"tmp/x/ws", "tmp"}, Own: []string{"tmp/x/ws"}, Protected: []string{"tmp/x/ws/.git"},
			Missing: []string{"tmp/x/.git", "tmp/.git"},
			Binds:   []string{"tmp", "tmp/x", "tmp/x/ws", "ro tmp/x/ws/.git"},
		},
	},
	{
		name: "below a repository that lies in another root", entries: []string{"tmp/repo/.git/", "tmp/repo/sub/"}, cwd: "tmp/repo/sub", tmp: "tmp",
		want: view{
			Roots: []string{"tmp/repo/sub", "tmp"}, Own: []string{"tmp/repo/sub"}, Protected: []string{"tmp/repo/.git"},
			Missing: []string{"tmp/repo/sub/.git", "tmp/.git"},
			Binds:   []string{"tmp", "tmp/repo", "ro tmp/repo/.git"},
		},
	},
	{
		name: "worktree", cwd: "ws/wt", roots: []string{"ws"},
		entries: []string{"ws/repo/.git/worktrees/wt/commondir:../..\n", "ws/wt/.git:gitdir: $/ws/repo/.git/worktrees/wt\n"},
		want: view{
			Roots: []string{"ws/wt", "ws"}, Own: []string{"ws/wt", "ws"},
			Protected: []string{"ws/repo/.git", "ws/repo/.git/worktrees/wt", "ws/wt/.git"}, Missing: []string{"ws/.git"},
			Binds: []string{"ws", "ws/repo", "ws/wt", "ro ws/repo/.git", "ro ws/wt/.git", "ro ws/repo/.git/worktrees", "ro ws/repo/.git/worktrees/wt"},
		},
	},
	{
		name: "repository elsewhere", cwd: "ws", roots: []string{"data"}, entries: []string{"ws/", "data/git/", "ws/.git -> ../data/git"},
		want: view{
			Roots: []string{"ws", "data"}, Own: []string{"ws", "data"}, Protected: []string{"data/git", "ws/.git"}, Missing: []string{"data/.git"},
			Binds: []string{"data", "ws", "ro data/git", "ro ws/.git"},
		},
	},
	{
		name: "the user wants to write the repository", entries: []string{"ws/.git/"}, cwd: "ws", roots: []string{"ws/.git"},
		want: view{
			Roots: []string{"ws", "ws/.git"}, Own: []string{"ws", "ws/.git"}, Missing: []string{"ws/.git/.git"}, Binds: []string{"ws"},
		},
	},
	{
		name: "the user wants to write a part of it", entries: []string{"ws/.git/refs/"}, cwd: "ws", roots: []string{"ws/.git/refs"},
		want: view{
			Roots: []string{"ws", "ws/.git/refs"}, Own: []string{"ws", "ws/.git/refs"}, Protected: []string{"ws/.git"},
			Missing: []string{"ws/.git/refs/.git", "ws/.git/.git"},
			Binds:   []string{"ws", "ro ws/.git", "ws/.git/refs"},
		},
	},
	{
		name: "a file", entries: []string{"ws/", "log:"}, cwd: "ws", roots: []string{"log"},
		want: view{Roots: []string{"ws", "log"}, Own: []string{"ws", "log"}, Missing: []string{"ws/.git"}, Binds: []string{"log", "ws"}},
	},
}

func TestLayout(t *testing.T) {
	for _, c := range layouts {
		t.Run(c.name, func(t *testing.T) {
			base := tree(t, c.entries...)
			at := func(name string) string {
				if plain, ok := strings.CutPrefix(name, "="); ok || name == "" {
					return plain
				}
				return filepath.Join(base, name)
			}
			policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: c.tmp == ""}
			for _, r := range c.roots {
				policy.WritableRoots = append(policy.WritableRoots, at(r))
			}
			l := newLayout(policy, Place{Cwd: at(c.cwd), Home: at(c.home), Env: []string{"TMPDIR=x", "TMPDIR=" + at(c.tmp)}})
			if d := cmp.Diff(c.want, viewOf(l, base)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestReadOnlyHasNoRoots(t *testing.T) {
	base := tree(t, "ws/.git/")
	l := newLayout(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly, WritableRoots: []string{base}}, Place{Cwd: base + "/ws", Env: []string{"TMPDIR=" + base}})
	if d := cmp.Diff(view{}, viewOf(l, base)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestGitPaths(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []string
		want    string
	}{
		{"none", []string{"ws/"}, ""},
		{"directory", []string{"ws/.git/"}, "ws/.git"},
		{"link", []string{"ws/.git -> real", "ws/real/"}, "ws/.git ws/real"},
		{"link to nowhere", []string{"ws/.git -> none"}, "ws/.git"},
		{"submodule", []string{"ws/.git:gitdir: ../top/.git/modules/m\n", "top/.git/modules/m/"}, "ws/.git top/.git/modules/m"},
		{"link to a file", []string{"ws/.git -> f", "ws/f:gitdir: g\r\n", "ws/g/"}, "ws/.git ws/f ws/g"},
		{"worktree", []string{"ws/.git:gitdir: $/top/w\n", "top/w/commondir:..\n"}, "ws/.git top/w top"},
		{"worktree through a link", []string{"ws/.git:gitdir: $/l/w\n", "top/w/commondir:$/l\n", "l -> top"}, "ws/.git top/w top"},
		{"common part is gone", []string{"ws/.git:gitdir: $/w\n", "w/commondir:none\n"}, "ws/.git w"},
		{"leads nowhere", []string{"ws/.git:gitdir: none\n"}, "ws/.git"},
		{"no such file", []string{"ws/.git:something else"}, "ws/.git"},
		{"far too long", []string{"ws/.git:gitdir: " + strings.Repeat("./", 5000) + "g\n", "ws/g/"}, "ws/.git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := append([]string{"ws/"}, c.entries...)
			base := tree(t, entries...)
			got := strings.ReplaceAll(strings.Join(gitPaths(filepath.Join(base, "ws")), " "), base+"/", "")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestGitPipeDoesNotHang has a command put a pipe where a file is expected.
func TestGitPipeDoesNotHang(t *testing.T) {
	base := tree(t, "ws/", "w/", "ws/.git:gitdir: $/w\n")
	check(t, syscall.Mkfifo(filepath.Join(base, "w", "commondir"), 0o600))
	if got := gitPaths(filepath.Join(base, "ws")); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestFollow(t *testing.T) {
	base := tree(t, "a/b/", "a/l -> b", "m -> a/l", "up -> ..", "abs -> $/a/../a/l", "loop -> loop", "nowhere -> none")
	for _, c := range []struct{ name, real, links string }{
		{"a/b", "a/b", ""},
		{"a/./b//", "a/b", ""},
		{"a/l", "a/b", "a"},
		{"m", "a/b", ". a"},
		{"abs/../b", "a/b", ". a"},
		{"a/b/../l", "a/b", "a"},
		{"loop", "error", ""},
		{"nowhere", "error", ""},
		{"a/none", "error", ""},
	} {
		real, links, err := follow(filepath.Join(base, "x")[:len(base)+1] + c.name)
		if err != nil {
			real, links = "error", nil
		}
		for i := range links {
			links[i], _ = filepath.Rel(base, links[i])
		}
		got := strings.TrimPrefix(real, base+"/") + "|" + strings.Join(links, " ")
		if want := c.real + "|" + c.links; got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
		if want, err := filepath.EvalSymlinks(base + "/" + c.name); err == nil && want != real {
			t.Errorf("%s: got %q, the library says %q", c.name, real, want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		name, dir string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
	} {
		if got := within(c.name, c.dir); got != c.want {
			t.Errorf("within(%q, %q) = %v", c.name, c.dir, got)
		}
	}
}
