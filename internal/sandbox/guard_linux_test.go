package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

// TestHomeCannotBePlanted has fermata's home below the working directory in all
// ways in which people set one up. After the attack the next run must find the same
// configuration, or none.
func TestHomeCannotBePlanted(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for i, c := range []struct{ name, setup, home, attack string }{
		{"a link", `mkdir $OUT/real; ln -s $OUT/real home`, "home", `rm home; mv evil home`},
		{"a link, replaced", `mkdir real; ln -s real home`, "home", `ln -sfn evil home`},
		{"a link, moved", `mkdir real; ln -s real home`, "home", `mv home x; mv evil home`},
		{"a link, exchanged", `mkdir real; ln -s real home`, "home", `t exchange home evil`},
		{"a link's target", `mkdir -p a/real; ln -s a/real home`, "home", `mv a b; mkdir a; mv evil a/real`},
		{"a link's target, written", `mkdir -p a/real; ln -s a/real home`, "home", `echo planted > a/real/config.toml`},
		{"a link in the middle", `mkdir -p a/home; ln -s a b`, "b/home", `mkdir c; mv evil c/home; ln -sfn c b`},
		{"links that lead to links", `mkdir -p a/home; ln -s a b; ln -s b c; ln -s c/home home`, "home", `mkdir x; mv evil x/home; ln -sfn x b`},
		{"it does not exist", ``, "home", `mv evil home`},
		{"its parents do not exist", ``, "a/b/home", `mkdir -p a/b; mv evil a/b/home`},
		{"a link that leads nowhere", `ln -s a/real home`, "home", `mkdir a; mv evil a/real`},
		{"configuration is a link", `mkdir -p dot home; echo good > dot/config.toml; ln -s ../dot/config.toml home/config.toml`, "home", `echo planted > dot/config.toml`},
		{
			"configuration is a link, replaced", `mkdir -p dot home; echo good > dot/config.toml; ln -s ../dot/config.toml home/config.toml`, "home",
			`mv evil/config.toml dot/config.toml`,
		},
		{
			"configuration is a link, its directory moved", `mkdir -p dot home; echo good > dot/config.toml; ln -s ../dot/config.toml home/config.toml`, "home",
			`mv dot x; mv evil dot`,
		},
		{"configuration is a link that leads nowhere", `mkdir -p dot home; ln -s ../dot/config.toml home/config.toml`, "home", `echo planted > dot/config.toml`},
		{"a directory in it is a link", `mkdir -p dot/x home; ln -s ../dot/x home/rules; ln -s rules/config.toml home/config.toml`, "home", `echo planted > dot/x/config.toml`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, ability := range []Ability{best, noMounts} {
				worked, out := plantHome(t, a, ability, c.setup, c.home, c.attack, true)
				if worked {
					t.Errorf("mounts %t: planted (%s)", ability.Mounts, out)
				}
			}
			if !inPart(i, 4) {
				return
			}
			if worked, out := plantHome(t, a, best, c.setup, c.home, c.attack, false); !worked {
				t.Errorf("unprotected: not planted (%s), so this proves nothing", out)
			}
		})
	}
}

// plantHome reports whether an attack changes the configuration of the next run.
func plantHome(t *testing.T, a *agent, ability Ability, setup, home, attack string, protect bool) (worked bool, out string) {
	t.Helper()
	w := newWorld(t)
	must(t, os.RemoveAll(w.home))
	w.home = filepath.Join(w.ws, home)
	must(t, os.Mkdir(filepath.Join(w.ws, "evil"), 0o755))
	must(t, os.WriteFile(filepath.Join(w.ws, "evil", "config.toml"), []byte("planted\n"), 0o644))
	prepare := exec.Command("sh", "-ec", setup)
	prepare.Dir, prepare.Env = w.ws, append(os.Environ(), "OUT="+w.outside)
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	var box *Confinement
	if protect {
		box = w.confinement(t, ability, onlyWorkspace())
	}
	_, out = a.run(t, w, box, "", attack)
	text, _ := os.ReadFile(filepath.Join(w.home, "config.toml"))
	return strings.Contains(string(text), "planted"), out
}

// TestOtherGuards protects the home of another run, and a program that fermata
// will execute.
func TestOtherGuards(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	for _, ability := range []Ability{best, noMounts} {
		w := newWorld(t)
		must(t, os.WriteFile(filepath.Join(w.ws, "sub", "notify"), []byte("good"), 0o755))
		c, err := newWith(ability, onlyWorkspace(), Place{
			Cwd: w.ws, Home: w.home, OtherHomes: []string{filepath.Join(w.ws, "other")},
			Guarded: []string{filepath.Join(w.ws, "sub", "notify"), filepath.Join(w.ws, "nothing")},
		})
		must(t, err)
		_, out := a.run(t, w, c, "", `exec 2>/dev/null; echo x > other/config.toml && echo home; mv other o && echo moved
			echo x > sub/notify && echo program; mv sub/notify sub/n && echo renamed; echo x > sub/new && echo new; :`)
		want := "new\n"
		if !ability.Mounts {
			want = "" // nothing can be made beside it
		}
		if out != want {
			t.Errorf("mounts %t: output %q, want %q", ability.Mounts, out, want)
		}
	}
}

// TestSecretsAreOutOfReach tries to read and use them in every mode.
func TestSecretsAreOutOfReach(t *testing.T) {
	a := newAgent(t)
	best := canConfine(t)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	networked := onlyWorkspace()
	networked.NetworkAccess = true
	for name, policy := range map[string]protocol.SandboxPolicy{
		"read-only": {Mode: protocol.SandboxReadOnly}, "workspace-write": onlyWorkspace(), "with the network": networked,
		"full access": {Mode: protocol.SandboxFullAccess},
	} {
		for _, ability := range []Ability{best, noMounts} {
			w := newWorld(t)
			w.home = filepath.Join(w.outside, "home")
			for file, text := range map[string]string{
				"run/token": "secret", "keys/openai": "secret", ".env": "KEY=secret", "auth.json": "secret", "config.toml": "fine", "skills/a": "fine",
			} {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(w.home, file)), 0o700))
				must(t, os.WriteFile(filepath.Join(w.home, file), []byte(text+"\n"), 0o600))
			}
			must(t, os.Mkdir(filepath.Join(w.base, "linked"), 0o700))
			must(t, os.WriteFile(filepath.Join(w.base, "linked", "c"), []byte("secret\n"), 0o600))
			must(t, os.Symlink(filepath.Join(w.base, "linked", "c"), filepath.Join(w.home, ".credentials.json")))
			a.listen(t, "unix", filepath.Join(w.home, "run", "s"))
			_, out := a.run(t, w, w.confinement(t, ability, policy), "", `exec 2>/dev/null; cd $OUT/home
				cat run/token keys/* .env auth.json .credentials.json $OUT/../linked/c /proc/self/cwd/auth.json
				t dial unix run/s && echo connected; cat config.toml skills/a $WS/file /etc/passwd | grep -c .`)
			secret := strings.Contains(out, "secret") || strings.Contains(out, "connected")
			if full := policy.Mode == protocol.SandboxFullAccess; secret != full {
				t.Errorf("%s, mounts %t: output %q", name, ability.Mounts, out)
			}
			if strings.HasSuffix(out, "\n0\n") || out == "0\n" || strings.HasSuffix(out, "\n2\n") {
				t.Errorf("%s, mounts %t: other files cannot be read: %q", name, ability.Mounts, out)
			}
		}
	}
}

func TestOffLimits(t *testing.T) {
	base := tree(t, "ws/file:x", "home/run/s:", "home/keys/", "home/.env:x", "home/config.toml:x", "ws/link -> ../home/.env", "home/auth.json -> ../ws/auth", "ws/auth:x", "ws/dir -> $/home")
	must(t, os.Link(filepath.Join(base, "home/.env"), filepath.Join(base, "ws/hard")))
	for name, want := range map[string]bool{
		"home/run": true, "home/run/s": true, "home/run/new": true, "home/keys/new": true, "home/.env": true, "home/auth.json": true, "ws/auth": true,
		"ws/link": true, "ws/hard": true, "ws/dir/run/s": true, "ws/dir/.credentials.json": true,
		"home/config.toml": false, "home": false, "ws/file": false, "ws/new": false, "none/none": false,
	} {
		if got := OffLimits([]string{filepath.Join(base, "home")}, filepath.Join(base, name)); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
	if !OffLimits([]string{filepath.Join(base, "home")}, filepath.Join(base, "ws/file"), filepath.Join(base, "ws/file")) {
		t.Error("a file that is named is not off limits")
	}
	if OffLimits(nil, filepath.Join(base, "home/.env")) || OffLimits([]string{filepath.Join(base, "none")}, "/etc/passwd") {
		t.Error("without a home nothing is off limits")
	}
}
