package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestDotEnv(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".env"), strings.Join([]string{
		"\uFEFF# comment", "", "A=1", "export B = two words # why", "C='single # \\n'", `D="double \"q\" \n \\n \$x" # c`, "E=", "F=a#b",
		"G=#nothing", "CODEX_HOME=/evil", "fermata_x=1", "OPEN='secret-1", `OPEN2="secret-2\"`, "no equals secret-3", "=secret-4", "bad name=secret-5",
		"SET=from file", "CR=x\r", "H=a=b",
	}, "\n"))
	env, warnings, err := WithDotEnv(home, environment("SET", "from environment"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range strings.Fields("A B C D E F G CODEX_HOME fermata_x OPEN OPEN2 SET CR H nowhere") {
		got[name] = env(name)
	}
	want := map[string]string{
		"A": "1", "B": "two words", "C": "single # \\n", "D": "double \"q\" \n \\n $x", "E": "", "F": "a#b", "G": "", "CODEX_HOME": "", "fermata_x": "",
		"OPEN": "", "OPEN2": "", "SET": "from environment", "CR": "x", "H": "a=b", "nowhere": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var text []string
	for _, w := range warnings {
		text = append(text, strings.ReplaceAll(w.String(), home, "HOME"))
	}
	wantWarnings := []string{
		"HOME/.env:10:1: CODEX_HOME: is not taken from this file; set it in the environment",
		"HOME/.env:11:1: fermata_x: is not taken from this file; set it in the environment",
		"HOME/.env:12:1: OPEN: the quote is not closed; the line is left out",
		"HOME/.env:13:1: OPEN2: the quote is not closed; the line is left out",
		"HOME/.env:14:1: want NAME=value; the line is left out",
		"HOME/.env:15:1: want NAME=value; the line is left out",
		"HOME/.env:16:1: want NAME=value; the line is left out",
	}
	if diff := cmp.Diff(wantWarnings, text); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestWithoutDotEnv(t *testing.T) {
	env, warnings, err := WithDotEnv(t.TempDir(), environment("A", "1"))
	if err != nil || warnings != nil || env("A") != "1" {
		t.Errorf("got %v %v", warnings, err)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".env"), 0o700); err != nil {
		t.Fatal(err)
	}
	if env, _, err := WithDotEnv(home, environment("A", "1")); err == nil || env("A") != "1" {
		t.Errorf("a directory: %v", err)
	}
}
