package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHome(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for want, env := range map[string][]string{
		"/f":             {"FERMATA_HOME", "/f", "CODEX_HOME", "/c", "HOME", "/h"},
		"/c":             {"CODEX_HOME", "/c", "HOME", "/h"},
		"/h/.fermata":    {"HOME", "/h"},
		dir + "/sub/dir": {"FERMATA_HOME", "sub/dir"},
	} {
		got, err := Home(environment(env...))
		if err != nil || got != want {
			t.Errorf("Home(%v) = %q, %v, want %q", env, got, err, want)
		}
	}
	if _, err := Home(environment()); !errors.Is(err, ErrNoHome) {
		t.Errorf("without any: %v", err)
	}
	if _, _, err := Load(Options{}); !errors.Is(err, ErrNoHome) {
		t.Errorf("load without any: %v", err)
	}
}

func TestLoadFindsTheHome(t *testing.T) {
	home := homeWith(t, "model = 'found'")
	for _, name := range []string{"FERMATA_HOME", "CODEX_HOME"} {
		c, _, err := Load(Options{Env: environment(name, home)})
		if err != nil || c.Model != "found" || c.Home != home || c.File != filepath.Join(home, FileName) {
			t.Errorf("%s: %v %v", name, c, err)
		}
	}
	c, _, err := Load(Options{Home: filepath.Join(home, "nowhere")})
	if err != nil || c.File != "" {
		t.Errorf("a home that is not there: %v %v", c, err)
	}
}

func TestLoadReportsAFileThatCannotBeRead(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(Options{Home: home}); err == nil || !strings.Contains(err.Error(), FileName) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	home := homeWith(t, "\napproval_policy = 'x'\n")
	_, _, err := Load(Options{Home: home})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %#v", err)
	}
	want := Source{Kind: FromFile, File: filepath.Join(home, FileName), Line: 2, Column: 19}
	if e.Source != want || e.Key != "approval_policy" {
		t.Errorf("got %+v", e)
	}
}
