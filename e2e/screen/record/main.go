// Command record plays a session of fermata with its demo model in tmux, and makes what the README shows of it:
// a picture of the screen (SVG) and a recording (asciicast v2, for asciinema play).
//
//	cd e2e && go run ./screen/record --out ../docs/images
//
// It builds fermata, and needs git and tmux. Nothing in the files is written by hand: they are what the program drew.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The size of the terminal.
const (
	columns = 96
	rows    = 30
)

func main() {
	out := flag.String("out", ".", "write session.svg and session.cast to `DIR`")
	bin := flag.String("bin", "", "use this `FILE` instead of building fermata")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := record(ctx, *out, *bin); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// record plays the session in a home of its own, and writes what came of it.
func record(ctx context.Context, out, bin string) error {
	home, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	if err := prepare(ctx, home, bin); err != nil {
		return err
	}
	t, err := startTmux(ctx, home)
	if err != nil {
		return err
	}
	defer t.end()
	picture, err := play(t)
	if err != nil {
		return fmt.Errorf("%w; the screen:\n%s", err, t.text())
	}
	cast, err := t.cast()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "session.svg"), svg(picture), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "session.cast"), cast, 0o644)
}

// prepare makes a small project, and builds the program if need be.
func prepare(ctx context.Context, home, bin string) error {
	project := filepath.Join(home, "hello")
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(project, "greet.sh"), []byte("echo hello\n"), 0o644); err != nil {
		return err
	}
	program := filepath.Join(home, "bin", "fermata")
	made := []string{"go", "build", "-o", program, "./cmd/fermata"}
	if bin != "" {
		abs, err := filepath.Abs(bin)
		if err != nil {
			return err
		}
		made = []string{"install", "-D", abs, program}
	}
	for _, c := range []struct {
		dir  string
		args []string
	}{
		{"..", made},
		{project, []string{"git", "init", "-q", "-b", "main"}},
		{project, []string{"git", "add", "."}},
		{project, []string{"git", "-c", "user.name=you", "-c", "user.email=you@example.com", "commit", "-q", "-m", "first"}},
	} {
		cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
		cmd.Dir = c.dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", c.args, err, text)
		}
	}
	return nil
}

// play is the session: start, a turn that changes a file and asks before it runs it, a reply that is
// interrupted, quit, and resume. It returns the screen at the question.
func play(t *tmux) (picture string, err error) {
	steps := []func() error{
		t.line("fermata --demo -a untrusted"),
		t.wait("Describe a task"),
		t.line("plan: run: cat greet.sh; write greet.sh: echo hello, world; run: sh greet.sh"),
		t.wait("Allow these changes?"),
		t.pause(2 * time.Second),
		t.key("y"),
		t.wait("Allow this command?"),
		t.wait("you can answer later"),
		func() error { picture = t.styled(); return nil },
		t.pause(2 * time.Second),
		t.key("y"),
		t.wait("The plan is carried out"),
		t.pause(time.Second),
		t.line("talk 200"),
		t.wait("word30"),
		t.key("Escape"),
		t.wait("interrupted after"),
		t.pause(2 * time.Second),
		t.line("/quit"),
		t.wait("fermata resume"),
		t.pause(time.Second),
		t.line("fermata resume --last"),
		t.wait("Describe a task"),
		t.line("what happened?"),
		t.wait("The turn was interrupted"),
		t.pause(3 * time.Second),
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return "", err
		}
	}
	return picture, nil
}
