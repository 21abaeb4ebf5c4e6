package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEnvPolicy(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/h", "USER=u", "LANG=C", "EMPTY=", "API_KEY=1", "my_secret_x=2", "GITHUB_TOKEN=3", "MONKEY=4",
		"A=old", "no equals sign", "=odd", "A=new=2",
	}
	for _, c := range []struct {
		name   string
		policy EnvPolicy
		want   string
	}{
		{"default", EnvPolicy{}, "PATH=/bin HOME=/h USER=u LANG=C EMPTY= A=new=2"},
		{"all", EnvPolicy{Inherit: InheritAll}, "PATH=/bin HOME=/h USER=u LANG=C EMPTY= A=new=2"},
		{"core", EnvPolicy{Inherit: InheritCore}, "PATH=/bin HOME=/h USER=u"},
		{"none", EnvPolicy{Inherit: InheritNone}, ""},
		{"unknown", EnvPolicy{Inherit: "some"}, ""},
		{"secrets", EnvPolicy{KeepSecrets: true}, "PATH=/bin HOME=/h USER=u LANG=C EMPTY= API_KEY=1 my_secret_x=2 GITHUB_TOKEN=3 MONKEY=4 A=new=2"},
		{"exclude", EnvPolicy{Exclude: []string{"p*", "?ang", "a"}}, "HOME=/h USER=u EMPTY="},
		{"set", EnvPolicy{Inherit: InheritNone, Set: map[string]string{"Z": "1", "B": "2=3", "": "x"}}, "B=2=3 Z=1"},
		{"set replaces in place", EnvPolicy{Inherit: InheritCore, Set: map[string]string{"HOME": "/x", "N": ""}}, "PATH=/bin HOME=/x USER=u N="},
		{"set is not excluded", EnvPolicy{Inherit: InheritNone, Exclude: []string{"*"}, Set: map[string]string{"MY_KEY": "1"}}, "MY_KEY=1"},
		{"include only", EnvPolicy{IncludeOnly: []string{"path", "h*"}}, "PATH=/bin HOME=/h"},
		{"include only does not bring back", EnvPolicy{IncludeOnly: []string{"*KEY*", "PATH"}, Exclude: []string{"PATH"}}, ""},
		{"include only covers set", EnvPolicy{IncludeOnly: []string{"PATH"}, Set: map[string]string{"Z": "1"}}, "PATH=/bin"},
	} {
		before := slices.Clone(environ)
		got := c.policy.Apply(environ)
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if !slices.Equal(before, environ) {
			t.Errorf("%s: the environment it was given changed", c.name)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"a", "", false},
		{"*", "", true},
		{"**", "abc", true},
		{"a*c", "abbc", true},
		{"a*c", "abcd", false},
		{"*a*b", "xaxxab", true},
		{"*key*", "monkeys", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"?", "", false},
		{"[a]", "a", false},
		{"[a]", "[a]", true},
		{"a*", "ba", false},
		{strings.Repeat("a*", 30) + "b", strings.Repeat("a", 5000), false}, // returns at all
	} {
		if got := match(c.pattern, c.s); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

func TestHardenKeepsTheRest(t *testing.T) {
	got := Harden([]string{"PATH=/bin", "MY_TOKEN=x", "GIT_PAGER=less", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"})
	for _, want := range []string{
		"PATH=/bin", "MY_TOKEN=x", "GIT_PAGER=cat", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c",
		"GIT_CONFIG_KEY_1=safe.bareRepository", "GIT_CONFIG_VALUE_1=explicit", "GIT_CONFIG_COUNT=5",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	for _, count := range []string{"-3", "x", ""} {
		if got := Harden([]string{"GIT_CONFIG_COUNT=" + count}); !slices.Contains(got, "GIT_CONFIG_COUNT=4") {
			t.Errorf("count %q: %q", count, got)
		}
	}
}

// What git does behind one's back, it does not do hardened. Each trap is sprung
// once without, to know that it works.
func TestHardenStopsGit(t *testing.T) {
	fresh := workplace(t)
	for _, c := range []struct {
		name    string
		trap    func(t *testing.T, dir, evil string) string // returns where to run git
		args    []string
		without string // a variable that an older git does not know
	}{
		{"fsmonitor", func(t *testing.T, dir, evil string) string {
			runGit(t, dir, "config", "core.fsmonitor", evil)
			return dir
		}, []string{"status"}, ""},
		{"hook and status", hookTrap, []string{"status"}, ""},
		{"hook and diff", hookTrap, []string{"diff"}, ""},
		{"embedded bare repository", func(t *testing.T, dir, evil string) string {
			sub := filepath.Join(dir, "vendor/evil")
			runGit(t, dir, "clone", "-q", "--bare", ".", sub)
			runGit(t, sub, "config", "core.fsmonitor", evil)
			runGit(t, sub, "config", "core.bare", "false")
			runGit(t, sub, "config", "core.worktree", ".")
			runGit(t, sub, "config", "diff.external", evil)
			write(t, filepath.Join(sub, "a.txt"), "other\n")
			runGit(t, sub, "read-tree", "HEAD")
			return sub
		}, []string{"diff"}, ""},
		{"signature", func(t *testing.T, dir, evil string) string {
			signed := "tree " + output(t, dir, "rev-parse", "HEAD^{tree}") + "\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n" +
				"gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nm\n"
			write(t, filepath.Join(dir, "signed"), signed)
			runGit(t, dir, "update-ref", "HEAD", output(t, dir, "hash-object", "-t", "commit", "-w", "signed"))
			runGit(t, dir, "config", "gpg.program", evil)
			runGit(t, dir, "config", "log.showSignature", "true")
			return dir
		}, []string{"log", "-1"}, ""},
		{"lazy fetch", lazyTrap, []string{"show", "HEAD"}, ""},
		{"lazy fetch, older git", lazyTrap, []string{"show", "HEAD"}, "GIT_NO_LAZY_FETCH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !Safe(append([]string{"git"}, c.args...)) {
				t.Fatalf("git %v is not even safe", c.args)
			}
			// Each in a place of its own: some traps go off only once.
			ran := func(change func([]string) []string) (bool, []byte) {
				dir, aside := t.TempDir(), t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(fresh)); err != nil {
					t.Fatal(err)
				}
				mark, evil := filepath.Join(aside, "mark"), filepath.Join(aside, "evil")
				write(t, evil, "#!/bin/sh\ntouch "+mark+"\n")
				at := c.trap(t, dir, evil)
				_ = os.Remove(mark) // and some while they are set
				said := look(at, change([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}), c.args)
				_, err := os.Stat(mark)
				return err == nil, said
			}
			hard := func(env []string) []string {
				return slices.DeleteFunc(Harden(env), func(v string) bool { return c.without != "" && strings.HasPrefix(v, c.without) })
			}
			if yes, said := ran(hard); yes {
				t.Errorf("git %v runs a program: %s", c.args, said)
			}
			if yes, said := ran(slices.Clone[[]string]); !yes {
				t.Skipf("this git does not fall into the trap at all: %s", said)
			}
		})
	}
}

func hookTrap(t *testing.T, dir, evil string) string {
	t.Helper()
	runGit(t, dir, "config", "core.hooksPath", filepath.Join(dir, "hooks"))
	write(t, filepath.Join(dir, "hooks/post-index-change"), "#!/bin/sh\n"+evil+"\n")
	// As it was, but of another time: git notes that when it looks.
	if err := os.Chtimes(filepath.Join(dir, "b.txt"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func lazyTrap(t *testing.T, dir, evil string) string {
	t.Helper()
	runGit(t, dir, "config", "uploadpack.allowFilter", "true")
	clone := filepath.Join(dir, "partial")
	runGit(t, dir, "clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+dir, clone)
	runGit(t, clone, "config", "remote.origin.uploadpack", evil)
	return clone
}

// look runs git, which may fail.
func look(dir string, env, args []string) []byte {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, env
	said, _ := cmd.CombinedOutput()
	return said
}

func output(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(b))
}

// The variable of a key stays away whatever its name is and the rest says.
func TestVariablesThatAreNeverInherited(t *testing.T) {
	environ := []string{"PATH=/bin", "MODEL_LOGIN=sesame", "OPENAI_API_KEY=sk", "MODEL_LOGIN_HOST=here"}
	for _, p := range []EnvPolicy{{}, {KeepSecrets: true}, {KeepSecrets: true, IncludeOnly: []string{"*"}}, {Inherit: InheritAll, KeepSecrets: true, Exclude: []string{"x"}}} {
		p.Never = []string{"MODEL_LOGIN", "OPENAI_API_KEY"}
		if got := strings.Join(p.Apply(environ), " "); got != "PATH=/bin MODEL_LOGIN_HOST=here" {
			t.Errorf("%+v: %s", p, got)
		}
	}
	p := EnvPolicy{Never: []string{"MODEL_LOGIN"}, Set: map[string]string{"MODEL_LOGIN": "typed by the user"}}
	if got := strings.Join(p.Apply([]string{"MODEL_LOGIN=sesame"}), " "); got != "MODEL_LOGIN=typed by the user" {
		t.Errorf("set by the configuration: %s", got)
	}
}
