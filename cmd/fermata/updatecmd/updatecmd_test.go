package updatecmd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

func TestInstalled(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "home/.local/bin/fermata"), "program")
	write(t, filepath.Join(root, "home/.local/share/fermata/installed-by-script"), "https://example.com/releases/download\n")
	write(t, filepath.Join(root, "deb/var/lib/dpkg/info/fermata.list"), "/.\n/usr/bin/fermata\n")
	write(t, filepath.Join(root, "apk/lib/apk/db/installed"), "P:git\nV:2\n\nP:fermata\nV:1\n")
	write(t, filepath.Join(root, "rpm/usr/lib/sysimage/rpm/rpmdb.sqlite"), "")
	write(t, filepath.Join(root, "rpm/usr/share/doc/fermata/LICENSES.txt"), "")
	for want, m := range map[string]machine{
		"the install script": {program: filepath.Join(root, "home/.local/bin/fermata"), root: root},
		"npm":                {program: "/usr/lib/node_modules/@fermata-agent/fermata-linux-x64/bin/fermata", root: root},
		"Homebrew":           {program: "/opt/homebrew/Cellar/fermata/0.3.0/bin/fermata", root: root},
		"a Debian package":   {program: "/usr/bin/fermata", root: filepath.Join(root, "deb")},
		"an Alpine package":  {program: "/usr/bin/fermata", root: filepath.Join(root, "apk")},
		"an RPM package":     {program: "/usr/bin/fermata", root: filepath.Join(root, "rpm")},
		"go install":         {program: "/home/me/go/bin/fermata", root: root, module: "v0.3.0"},
		"hand":               {program: "/home/me/fermata/fermata", root: root},
	} {
		in := m.installed()
		if in.by != want || in.update == "" {
			t.Errorf("%+v: %+v, want by %s", m, in, want)
		}
		if (in.prefix != "") != (want == "the install script") {
			t.Errorf("%s: the prefix is %q", want, in.prefix)
		}
	}
	// Beside a copy of the script, but not it.
	if in := (machine{program: filepath.Join(root, "home/.local/other/fermata"), root: root}).installed(); in.prefix != "" {
		t.Errorf("another copy: %+v", in)
	}
}

// A published is what a server has for downloading.
type published map[string][]byte

// publish makes a signed release with a program.
func publish(t *testing.T, key ed25519.PrivateKey, version, program string) published {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, f := range [][2]string{{"fermata", program}, {"man/man1/fermata.1", "page"}, {"completions/_fermata", "completes"}, {"../../escape", "out"}, {"other", "not installed"}} {
		must(t, w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o755, Size: int64(len(f[1]))}))
		_, err := w.Write([]byte(f[1]))
		must(t, err)
	}
	must(t, w.Close())
	must(t, zip.Close())
	name := "fermata_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	sum := sha256.Sum256(b.Bytes())
	list := []byte("0000  something-else\n" + hex.EncodeToString(sum[:]) + "  " + name + "\n")
	return published{
		name: b.Bytes(), "SHA256SUMS": list,
		"SHA256SUMS.sig": []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(key, list)) + "\n"),
	}
}

func TestUpdate(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	_, otherKey, err := ed25519.GenerateKey(nil)
	must(t, err)
	archive := "fermata_0.4.0_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	for name, c := range map[string]struct {
		change func(published)
		sign   ed25519.PrivateKey
		check  bool
		from   string // the version of this copy
		out    string
		fails  string
		want   string // the program afterwards
	}{
		"newer":            {out: "v0.4.0 is installed", want: "new"},
		"only checked":     {check: true, out: "v0.4.0 can be installed", want: "old"},
		"the same":         {from: "v0.4.0", out: "this is the newest version", want: "old"},
		"older":            {from: "v0.10.0", fails: "which is older", want: "old"},
		"from a checkout":  {from: "devel", out: "v0.4.0 is installed", want: "new"},
		"another key":      {sign: otherKey, fails: "is not signed by the key", want: "old"},
		"no signature":     {change: func(p published) { delete(p, "SHA256SUMS.sig") }, fails: "404", want: "old"},
		"changed list":     {change: func(p published) { p["SHA256SUMS"] = append(p["SHA256SUMS"], ' ') }, fails: "is not signed by the key", want: "old"},
		"changed archive":  {change: func(p published) { p[archive] = append(p[archive], 0) }, fails: "is not what SHA256SUMS says", want: "old"},
		"no archive":       {change: func(p published) { delete(p, archive) }, fails: "404", want: "old"},
		"too large a list": {change: func(p published) { p["SHA256SUMS"] = make([]byte, maxList+1) }, fails: "is larger than", want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			sign := key
			if c.sign != nil {
				sign = c.sign
			}
			files := publish(t, sign, "0.4.0", "new")
			if c.change != nil {
				c.change(files)
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, ok := files[strings.TrimPrefix(r.URL.Path, "/releases/latest/download/")]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write(data)
			}))
			defer server.Close()
			prefix := t.TempDir()
			program := filepath.Join(prefix, "bin", "fermata")
			write(t, program, "old")
			running, err := os.Open(program)
			must(t, err)
			defer running.Close()

			var out bytes.Buffer
			from := c.from
			if from == "" {
				from = "v0.3.9"
			}
			u := update{cli.NewStreams(nil, &out, &out), from, base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), c.check}
			err = u.run(t.Context(), installation{by: "the install script", prefix: prefix, from: server.URL + "/releases/download"})
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			if !strings.Contains(out.String(), c.out) {
				t.Errorf("printed %q, want %q", out.String(), c.out)
			}
			if got, _ := os.ReadFile(program); string(got) != c.want {
				t.Errorf("the program is %q, want %q", got, c.want)
			}
			kept := make([]byte, 3)
			if _, err := running.Read(kept); err != nil || string(kept) != "old" {
				t.Errorf("the file of what runs is %q, error %v", kept, err)
			}
			checkNothingElse(t, prefix, c.want == "new")
		})
	}
}

// checkNothingElse looks for files that should not be there.
func checkNothingElse(t *testing.T, prefix string, updated bool) {
	t.Helper()
	var files []string
	must(t, filepath.WalkDir(prefix, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ = filepath.Rel(prefix, name)
			files = append(files, name)
		}
		return err
	}))
	want := "bin/fermata"
	if updated {
		want = "bin/fermata share/man/man1/fermata.1 share/zsh/site-functions/_fermata"
	}
	if got := strings.Join(files, " "); got != want {
		t.Errorf("the files are %s, want %s", got, want)
	}
}

// Without a key it changes nothing and asks no server.
func TestUpdateWithoutKey(t *testing.T) {
	var out bytes.Buffer
	u := update{Streams: cli.NewStreams(nil, &out, &out), version: "v1.0.0"}
	must(t, u.run(t.Context(), installation{by: "the install script", prefix: t.TempDir(), from: "http://127.0.0.1:1", update: "curl it"}))
	if got := out.String(); got != "fermata v1.0.0, installed by the install script\nto update: curl it\n" {
		t.Errorf("printed %q", got)
	}
}

func TestIsNewer(t *testing.T) {
	order := []string{"devel", "v0.3.0-rc1", "v0.3.0-rc2", "v0.3.0", "v0.3.1", "v0.10.0", "v1.0.0"}
	for i, a := range order {
		for j, b := range order {
			if got := isNewer(a, b); got != (i > j) {
				t.Errorf("isNewer(%s, %s) = %v", a, b, got)
			}
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o755))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
