package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The link is in no argument of the browser, but in a file that only this user can read.
func TestTheLinkIsInNoArgument(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	t.Setenv("FERMATA_HOME", home)
	out := filepath.Join(bin, "args")
	browser := filepath.Join(bin, "browser")
	if err := errors.Join(unix.Mkfifo(out, 0o600), os.WriteFile(browser, []byte("#!/bin/sh\necho \"$@\" > "+out+"\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", browser)
	const link = "http://127.0.0.1:7777/?link=SECRET&x=\""
	done, err := OpenBrowser(link)
	if err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(out) // waits for the program
	if err != nil {
		t.Fatal(err)
	}
	file := strings.TrimSpace(string(args))
	if strings.Contains(file, "SECRET") || !strings.HasPrefix(file, filepath.Join(home, "run")) {
		t.Errorf("the arguments are %q", file)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "url=http://127.0.0.1:7777/?link=SECRET&amp;x=&#34;\"") {
		t.Errorf("%s, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	done()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A browser that cannot read the file is not started.
func TestConfinedBrowsers(t *testing.T) {
	data, bin := t.TempDir(), t.TempDir()
	t.Setenv("FERMATA_HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "xdg-open"), "#!/bin/sh\n")
	for exec, want := range map[string]bool{
		"env BAMF=x /snap/bin/firefox %u":                             true,
		"/usr/bin/flatpak run --branch=stable org.mozilla.firefox %u": true,
		"/usr/bin/firefox %u":                                         false,
	} {
		write(filepath.Join(bin, "xdg-settings"), "#!/bin/sh\necho b.desktop\n")
		write(filepath.Join(data, "applications", "b.desktop"), "[Desktop Entry]\nName=B\nExec="+exec+"\n")
		done, err := OpenBrowser("http://127.0.0.1/?link=x")
		if errors.Is(err, ErrConfinedBrowser) != want || !want && err != nil {
			t.Errorf("%s: %v", exec, err)
		}
		done()
	}
	write(filepath.Join(bin, "snap", "bin", "chromium"), "#!/bin/sh\n")
	t.Setenv("BROWSER", filepath.Join(bin, "snap", "bin", "chromium"))
	if _, err := OpenBrowser("x"); !errors.Is(err, ErrConfinedBrowser) {
		t.Errorf("BROWSER is a snap: %v", err)
	}
}
