package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const testKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// buildTiny makes a release of a tiny program from a copy of its checkout.
func buildTiny(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "dist")
	if err := os.CopyFS(root, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	r := release{root: root, out: out, program: "./cmd/tiny", variables: "main", key: testKey}
	if err := r.prepare(t.Context(), "all"); err != nil {
		t.Fatal(err)
	}
	r.targets = []target{host(), {"darwin", "arm64"}}
	if err := r.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		before, _ := os.ReadFile(filepath.Join("testdata/tiny", name))
		if after, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the build changed %s (%v)", name, err)
		}
	}
	return out
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// Two builds from two checkouts at different times are equal, byte for byte.
func TestTwoBuildsAreEqual(t *testing.T) {
	one, two := buildTiny(t), buildTiny(t)
	list := names(t, one)
	if other := names(t, two); !slices.Equal(list, other) {
		t.Fatalf("one build has %v, the other %v", list, other)
	}
	if len(list) < 12 {
		t.Errorf("only %v were built", list)
	}
	for _, name := range list {
		a, _ := os.ReadFile(filepath.Join(one, name))
		b, _ := os.ReadFile(filepath.Join(two, name))
		if len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s: %d and %d bytes, which differ", name, len(a), len(b))
		}
	}
}

func TestRelease(t *testing.T) {
	dir := buildTiny(t)
	t.Run("checksums", func(t *testing.T) { checkChecksums(t, dir) })
	t.Run("archive", func(t *testing.T) { checkArchive(t, dir) })
	t.Run("parts", func(t *testing.T) { checkParts(t, dir) })
	t.Run("debian", func(t *testing.T) { checkDebian(t, dir) })
	t.Run("script", func(t *testing.T) { checkInstaller(t, dir) })
	t.Run("npm", func(t *testing.T) { checkNPM(t, dir) })
}

// checkChecksums has all files in the list, and the list signed.
func checkChecksums(t *testing.T, dir string) {
	list, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t, dir) {
		if strings.HasPrefix(name, "SHA256SUMS") {
			continue
		}
		sum, err := checksum(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(list), sum+"  "+name+"\n") {
			t.Errorf("SHA256SUMS has no line for %s (%v)", name, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS.sig"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	seed, _ := base64.StdEncoding.DecodeString(testKey)
	if err != nil || !ed25519.Verify(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey), list, signature) {
		t.Errorf("the signature is wrong: %v", err)
	}
}

func checkArchive(t *testing.T, dir string) {
	h := host()
	data, err := os.ReadFile(filepath.Join(dir, "fermata_1.2.3_"+h.os+"_"+h.arch+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(zip)
	modes := map[string]int64{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
		if !h.ModTime.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%s has the time %v", h.Name, h.ModTime)
		}
	}
	for name, mode := range map[string]int64{"fermata": 0o755, "LICENSE": 0o644, "LICENSES.txt": 0o644, "man/man1/tiny.1": 0o644, "completions/_fermata": 0o644} {
		if modes[name] != mode {
			t.Errorf("%s has the mode %o, want %o", name, modes[name], mode)
		}
	}
}

func checkParts(t *testing.T, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "fermata_1.2.3_sbom.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &list); err != nil || list.BOMFormat != "CycloneDX" {
		t.Fatalf("%v: %s", err, text)
	}
	if c := list.Components; len(c) != 2 || c[0].Name != "golang.org/x/sys" || c[1].Name != "std" || c[1].Version == "" {
		t.Errorf("the parts are %+v", list.Components)
	}
}

func checkDebian(t *testing.T, dir string) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb here")
	}
	found, _ := filepath.Glob(filepath.Join(dir, "fermata_1.2.3*_"+host().arch+".deb"))
	if len(found) != 1 {
		t.Fatalf("the packages are %v", found)
	}
	root := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-x", found[0], root).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(root, "usr/bin/fermata")).Output()
	if err != nil || string(out) != "v1.2.3\n" {
		t.Errorf("the installed program printed %q, error %v", out, err)
	}
	for _, name := range []string{"usr/share/man/man1/tiny.1", "usr/share/bash-completion/completions/fermata", "usr/share/doc/fermata/LICENSES.txt"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}

// checkInstaller installs from a server, and nothing at all if the archive is another one.
func checkInstaller(t *testing.T, dir string) {
	serve := http.StripPrefix("/v1.2.3/", http.FileServer(http.Dir(dir)))
	damage := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if damage && strings.HasSuffix(req.URL.Path, ".tar.gz") {
			_, _ = io.WriteString(w, "something else")
			return
		}
		serve.ServeHTTP(w, req)
	}))
	defer server.Close()
	install := func(prefix string) (string, error) {
		cmd := exec.Command("sh", filepath.Join(dir, "install.sh"))
		cmd.Env = append(os.Environ(), "PREFIX="+prefix, "FERMATA_RELEASES="+server.URL)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	prefix := filepath.Join(t.TempDir(), "a prefix")
	if out, err := install(prefix); err != nil || !strings.Contains(out, "fermata v1.2.3 is in "+prefix+"/bin") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(prefix, "bin", "fermata")).Output()
	if err != nil || string(out) != "v1.2.3\n" {
		t.Errorf("the installed program printed %q, error %v", out, err)
	}
	damage = true
	prefix = filepath.Join(t.TempDir(), "b")
	if out, err := install(prefix); err == nil || !strings.Contains(out, "is not what SHA256SUMS says") {
		t.Errorf("a damaged archive: %v\n%s", err, out)
	}
	if _, err := os.Stat(prefix); err == nil {
		t.Error("something was installed from a damaged archive")
	}
}

func TestBadInput(t *testing.T) {
	for name, args := range map[string][]string{
		"is no system/processor":       {"--targets", "linux"},
		"there are":                    {"--targets", "plan9/amd64"},
		"is no version such as v1.2.3": {"--version", "1.2"},
		"unknown argument":             {"now"},
		"is not empty":                 {"--out", "."},
	} {
		if err := run(t.Context(), append([]string{"--root", "testdata/tiny", "--out", filepath.Join(t.TempDir(), "x")}, args...)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: error %v, want one with %q", args, err, name)
		}
	}
}
