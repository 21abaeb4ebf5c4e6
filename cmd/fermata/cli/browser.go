package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
)

// ErrConfinedBrowser says that the browser cannot read a file of ours.
var ErrConfinedBrowser = errors.New("the browser is a snap or a flatpak, which cannot read the file with the link: open the link that is printed")

// OpenBrowser opens a link: with the program that BROWSER names, else with that of the system. It does not wait for it. The
// link is a secret, and every user sees the arguments of processes: the browser is given a file that only this user can
// read, in a directory that commands of a model cannot, and which leads to the link. done removes the file.
func OpenBrowser(link string) (done func(), err error) {
	program := os.Getenv("BROWSER")
	switch {
	case program != "":
	case runtime.GOOS == "darwin":
		program = "open"
	default:
		program = "xdg-open"
	}
	if isConfined(program) {
		return func() {}, ErrConfinedBrowser
	}
	file, err := writeRedirect(link)
	if err != nil {
		return func() {}, err
	}
	done = func() { _ = os.Remove(file) }
	cmd := exec.Command(program, file)
	if err := cmd.Start(); err != nil {
		done()
		return func() {}, err
	}
	go func() { _ = cmd.Wait() }() // ends with the program: only so that it does not stay a zombie
	return done, nil
}

// redirectTTL is how long a file is left that a process did not remove. Links are valid for as long.
const redirectTTL = 10 * time.Minute

// writeRedirect writes a page that leads to a link, for this user alone.
func writeRedirect(link string) (file string, err error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, "run")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	old, _ := filepath.Glob(filepath.Join(dir, "open-*.html"))
	for _, name := range old {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > redirectTTL {
			_ = os.Remove(name)
		}
	}
	f, err := os.CreateTemp(dir, "open-*.html") // has mode 0600
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=%s"><title>fermata</title>`, html.EscapeString(link))
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// isConfined reports whether a browser is a snap or a flatpak: these do not see hidden directories.
func isConfined(program string) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	if program != "xdg-open" {
		path, err := exec.LookPath(program)
		if err != nil {
			return false
		}
		real, err := filepath.EvalSymlinks(path)
		return err == nil && (isConfinedText(path) || isConfinedText(real))
	}
	out, err := exec.Command("xdg-settings", "get", "default-web-browser").Output()
	if err != nil {
		return false
	}
	return isConfinedEntry(strings.TrimSpace(string(out)))
}

// isConfinedEntry looks at what starts a browser by the name of its desktop entry.
func isConfinedEntry(name string) bool {
	if name == "" || strings.Contains(name, "/") {
		return false
	}
	own := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(os.Getenv("HOME"), ".local/share"))
	dirs := append([]string{own, filepath.Join(own, "flatpak/exports/share")}, filepath.SplitList(cmp.Or(os.Getenv("XDG_DATA_DIRS"), "/usr/local/share:/usr/share"))...)
	for _, dir := range append(dirs, "/var/lib/snapd/desktop", "/var/lib/flatpak/exports/share") {
		f, err := os.Open(filepath.Join(dir, "applications", name))
		if err != nil {
			continue
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if program, ok := strings.CutPrefix(s.Text(), "Exec="); ok {
				return isConfinedText(program)
			}
		}
	}
	return false
}

// isConfinedText reports whether a path or a command line is that of a snap or a flatpak.
func isConfinedText(s string) bool {
	return strings.Contains(s, "/snap/") || strings.HasSuffix(s, "/bin/snap") || strings.Contains(s, "flatpak")
}
