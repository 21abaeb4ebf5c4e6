package project

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/policy"
)

type loaded struct {
	Config   *config.Config
	Projects *Store
	Warnings []config.Warning
}

func load(home string) (l loaded, err error) {
	o := config.Options{Home: home}
	if l.Config, _, err = config.Load(o); err == nil {
		l.Projects, l.Warnings, err = Open(o, l.Config)
	}
	return l, err
}

// start loads a configuration with this text; beside it is a git repository.
func start(t *testing.T, text string) (loaded, string) {
	t.Helper()
	home, repo := t.TempDir(), realDir(t.TempDir())
	for _, dir := range []string{filepath.Join(repo, ".git"), filepath.Join(repo, "sub")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(home, config.FileName), text)
	l, err := load(home)
	if err != nil {
		t.Fatal(err)
	}
	return l, repo
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTrustIsRememberedForTheRepository(t *testing.T) {
	l, repo := start(t, "# mine\nmodel = \"m\"\n")
	sub := filepath.Join(repo, "sub")
	if got := l.Projects.Trust(sub); got != "" {
		t.Errorf("at first: got %q", got)
	}
	other, err := load(l.Config.Home) // another process
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Trust{Trusted, Untrusted, ""} {
		if err := l.Projects.SetTrust(sub, want); err != nil {
			t.Fatal(err)
		}
		for _, ps := range []*Store{l.Projects, other.Projects} {
			for _, dir := range []string{repo, sub} {
				if got := ps.Trust(dir); got != want {
					t.Errorf("%s: got %q, want %q", dir, got, want)
				}
			}
		}
		if got := l.Projects.Trust(filepath.Dir(repo)); got != "" {
			t.Errorf("above: got %q", got)
		}
	}
	text, err := os.ReadFile(filepath.Join(l.Config.Home, config.FileName))
	if err != nil || !strings.HasPrefix(string(text), "# mine\nmodel = \"m\"\n") {
		t.Errorf("the file is now %q, %v", text, err)
	}
}

func TestPermissions(t *testing.T) {
	l, repo := start(t, "")
	ps := l.Projects
	want, ok := Offer([]string{"/bin/bash", "-c", "cd sub && go test ./..."}, filepath.Join(repo, "sub"))
	if !ok || !reflect.DeepEqual(want, Permission{Dir: repo, Prefix: []string{"go", "test"}}) {
		t.Fatalf("got %+v, %v", want, ok)
	}
	odd := Permission{Dir: repo, Prefix: []string{"./a b", "it's"}}
	for _, p := range []Permission{want, odd, want} {
		if err := ps.Allow(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := ps.Permissions(filepath.Join(repo, "sub")); !reflect.DeepEqual(got, []Permission{odd, want}) {
		t.Errorf("got %v", got)
	}
	if got := ps.Permissions(t.TempDir()); len(got) != 0 {
		t.Errorf("elsewhere: got %v", got)
	}
	link := filepath.Join(repo, "out")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if got := ps.Rules(link); len(got) != 0 {
		t.Errorf("behind a link that leaves the project: got %v", got)
	}
	again, err := load(l.Config.Home)
	if err != nil {
		t.Fatal(err)
	}
	r := policy.Rules{Approval: "untrusted", Prefixes: again.Projects.Rules(repo)}
	if got := r.Command(policy.CommandRequest{Argv: []string{"go", "test", "-v"}, Cwd: repo}).Verdict; got != policy.RunUnconfined {
		t.Errorf("what is allowed: got %v", got)
	}
	if err := ps.Revoke(want); err != nil {
		t.Fatal(err)
	}
	if got := again.Projects.Permissions(repo); !reflect.DeepEqual(got, []Permission{odd}) {
		t.Errorf("after one was revoked: got %v", got)
	}
	if err := errors.Join(ps.Revoke(odd), ps.SetTrust(repo, Trusted)); err != nil {
		t.Fatal(err)
	}
	if err := ps.Revoke(odd); !errors.Is(err, ErrNoPermission) {
		t.Errorf("revoked twice: got %v", err)
	}
}

func TestCodexRulesAreRead(t *testing.T) {
	l, repo := start(t, "")
	rules := filepath.Join(l.Config.Home, "rules", "default.rules")
	writeFile(t, rules, `prefix_rule(pattern=["git", "push"], decision="forbidden")`+"\nnetwork_rule(host=\"x\")\n")
	l, err := load(l.Config.Home)
	if err != nil || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0].String(), "network_rule is not supported") {
		t.Fatalf("got %v, %v", l.Warnings, err)
	}
	if got := l.Projects.Rules(repo); len(got) != 1 || got[0].Decision != policy.PrefixForbid {
		t.Errorf("got %v", got)
	}
	writeFile(t, rules, "\nprefix_rule(pattern=[])")
	if _, err := load(l.Config.Home); err == nil || !strings.Contains(err.Error(), "default.rules: line 2: pattern") {
		t.Errorf("got %v", err)
	}
}

func TestAllowedCommandsThatAreNone(t *testing.T) {
	l, _ := start(t, "")
	writeFile(t, filepath.Join(l.Config.Home, config.FileName), "[projects.'/x']\nallowed_commands = ['make; rm']\n")
	if _, err := load(l.Config.Home); err == nil || !strings.Contains(err.Error(), `"make; rm" is not the beginning of one command`) {
		t.Errorf("got %v", err)
	}
}
