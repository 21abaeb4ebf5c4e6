package secrets

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A process of the tests that registers a file and a port, says so, and waits to be killed.
func TestMain(m *testing.M) {
	if home := os.Getenv("SECRETS_TEST_HOME"); home != "" {
		_, fileErr := Home(home).Read(os.Getenv("SECRETS_TEST_FILE"))
		_, portErr := Home(home).Listen(Address{Port: 4500})
		fmt.Println(fileErr, portErr)
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// another starts that process. end kills it.
func another(t *testing.T, home, file string) (end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SECRETS_TEST_HOME="+home, "SECRETS_TEST_FILE="+file)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	end = func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil> <nil>\n" {
		end()
		t.Fatalf("%q, %v", line, err)
	}
	return end
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, []byte("sesame"), 0o600))
	return name
}

func own(ip []byte) bool { return len(ip) > 0 && ip[0] == 127 }

// What another process registers is known here: while it lives, and what of it stays after it was killed.
func TestRegistryIsShared(t *testing.T) {
	home := Home(t.TempDir())
	token := write(t, t.TempDir(), "token")
	local := Address{[]byte{127, 0, 0, 1}, 4500}
	if slices.Contains(home.Files(), token) || home.Refuses(local, own) {
		t.Fatal("the registry is not empty")
	}
	end := another(t, string(home), token)
	if !slices.Contains(home.Files(), token) {
		t.Errorf("the file of another process is not known: %q", home.Registered())
	}
	if !home.Refuses(local, own) || home.Refuses(Address{local.IP, 4501}, own) || home.Refuses(Address{[]byte{192, 0, 2, 1}, 4500}, own) {
		t.Error("the port of another process is not known, or another one is")
	}
	if got := home.Ports(); !slices.Equal(got, []uint16{4500}) {
		t.Errorf("ports %d", got)
	}
	home.prune(0)
	if !slices.Contains(home.Files(), token) {
		t.Error("an entry was removed although a process holds it")
	}

	end()
	if home.Refuses(local, own) || len(home.Ports()) != 0 {
		t.Error("the port of a process that was killed is still refused")
	}
	home.prune(maxFiles)
	if !slices.Contains(home.Files(), token) {
		t.Error("the file of a process that was killed is forgotten at once")
	}
	old := time.Now().Add(-keepFiles - time.Hour)
	entries, err := os.ReadDir(home.Dir())
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %v, %v", entries, err)
	}
	must(t, os.Chtimes(filepath.Join(home.Dir(), entries[0].Name()), old, old))
	home.prune(maxFiles)
	if slices.Contains(home.Files(), token) {
		t.Error("a file that was not used for long is still secret")
	}
}

// The number of entries is bounded; the oldest go first.
func TestEntriesAreBounded(t *testing.T) {
	home := Home(t.TempDir())
	must(t, os.MkdirAll(home.Dir(), 0o700))
	for i := range 10 {
		name := filepath.Join(home.Dir(), fmt.Sprint(filePrefix, i))
		must(t, os.WriteFile(name, fmt.Appendf(nil, "/token%d", i), 0o600))
		used := time.Now().Add(-time.Duration(i) * time.Hour)
		must(t, os.Chtimes(name, used, used))
	}
	home.prune(3)
	got := home.Registered()
	slices.Sort(got)
	if want := []string{"/token0", "/token1", "/token2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A new entry is seen at once, also by a process that has just looked.
func TestListingIsFresh(t *testing.T) {
	home, dir := Home(t.TempDir()), t.TempDir()
	must(t, home.Register(write(t, dir, "0")))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(home.Dir(), old, old)) // long enough ago to be remembered
	_ = home.Files()
	for i := range 20 {
		name := write(t, dir, fmt.Sprint(i))
		must(t, home.Register(name))
		if !slices.Contains(home.Files(), name) {
			t.Fatalf("%s is not known", name)
		}
	}
}

// What is registered: a link and what it leads to; nothing for pipes, and nothing for what is always secret.
func TestWhatIsRegistered(t *testing.T) {
	home, dir := Home(t.TempDir()), t.TempDir()
	token := write(t, dir, "token")
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(token, link))
	elsewhere := write(t, dir, "key")
	write(t, string(home), "keys", "plain")
	must(t, os.Symlink(elsewhere, filepath.Join(string(home), "keys", "linked")))
	for _, name := range []string{link, filepath.Join(string(home), "keys", "plain"), filepath.Join(string(home), "keys", "linked")} {
		if text, err := home.Read(name); err != nil || string(text) != "sesame" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	null := NewFile(os.DevNull)
	if text, err := null.Read(home); err != nil || len(text) != 0 {
		t.Errorf("a device that the user names: %q, %v", text, err)
	}
	got := home.Registered()
	slices.Sort(got)
	if want := []string{elsewhere, link, token}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if text, err := Home("").Read(token); err != nil || string(text) != "sesame" || len(Home("").Files()) != 0 {
		t.Errorf("without a home: %q, %v", text, err)
	}
}

// A file is registered before it is read, so that none is read that cannot be registered.
func TestRegisteredBeforeRead(t *testing.T) {
	home := Home(t.TempDir())
	must(t, os.WriteFile(filepath.Join(string(home), "run"), nil, 0o600)) // not a directory
	if text, err := home.Read(write(t, t.TempDir(), "token")); err == nil || text != nil {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := home.Listen(Address{Port: 1}); err == nil {
		t.Error("a port that could not be registered is served")
	}
}

func TestFileOfAFlag(t *testing.T) {
	home := Home(t.TempDir())
	name := write(t, t.TempDir(), "token")
	f := NewFile(name)
	if text, err := f.Read(home); err != nil || string(text) != "sesame" || !slices.Contains(home.Registered(), name) {
		t.Errorf("%q, %v, registered %q", text, err, home.Registered())
	}
	must(t, os.Link(name, name+"2"))
	if _, err := f.Read(home); err == nil || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("a file with two names: %v", err)
	}
}

// A file that is named by a link stays secret when the link leads elsewhere.
func TestLinksToFiles(t *testing.T) {
	home := Home(t.TempDir())
	file := write(t, t.TempDir(), "token")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(file, link))
	must(t, home.Register(link))
	if got := home.Registered(); len(got) != 2 || !slices.Contains(got, file) || !slices.Contains(got, link) {
		t.Errorf("registered %q, want %q and %q", got, link, file)
	}
}
