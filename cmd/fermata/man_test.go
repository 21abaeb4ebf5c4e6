package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

// Each command has a manual page, with all its flags, that man reads without a warning.
func TestManuals(t *testing.T) {
	dir := t.TempDir()
	if err := writeManuals(newRoot(cli.Stdio()), dir); err != nil {
		t.Fatal(err)
	}
	request := regexp.MustCompile(`^\.(TH|SH|TP|B|BR|nf|fi)\b`)
	pages := 0
	eachCommand(newRoot(cli.Stdio()), func(cmd *cobra.Command) {
		if cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		name := filepath.Join(dir, manualName(cmd)+".1")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		for _, want := range []string{".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", filepath.Base(name), want)
			}
		}
		for line := range strings.Lines(string(text)) {
			if (line[0] == '.' || line[0] == '\'') && !request.MatchString(line) {
				t.Errorf("%s: man would take this line for a request: %q", filepath.Base(name), line)
			}
		}
	})
	if pages < 40 {
		t.Errorf("only %d pages", pages)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff, which reads the pages once more, is not installed")
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	out, err := exec.Command(groff, append([]string{"-ww", "-z", "-man", "-Tutf8"}, names...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		"--a \\ b":  `\-\-a \e b`,
		".env file": `\&.env file`,
		"a → b":     `a \[u2192] b`,
		"a\n'b'":    "a\n\\&'b'",
	} {
		if got := roffLines(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
