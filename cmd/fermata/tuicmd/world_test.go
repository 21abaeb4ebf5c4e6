package tuicmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestBranchAndChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	for name, value := range map[string]string{"FERMATA_HOME": t.TempDir(), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"} {
		t.Setenv(name, value)
	}
	work, ctx := t.TempDir(), t.Context()
	file := func(name, text string) {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := branch(ctx, work); got != "" {
		t.Errorf("outside a repository the branch is %q", got)
	}
	if _, err := treeChanges(ctx, work); err == nil {
		t.Error("outside a repository something differs")
	}
	file("a.txt", "one\n")
	for _, args := range [][]string{
		{"init", "-q", "-b", "trunk"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "-m", "m"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", work}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	file("a.txt", "two\n")
	file("new.txt", "")
	if got := branch(ctx, work); got != "trunk" {
		t.Errorf("the branch is %q", got)
	}
	diff, err := treeChanges(ctx, work)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-one\n", "+two\n", "untracked: new.txt\n"} {
		if !strings.Contains(diff, want) {
			t.Errorf("the diff lacks %q:\n%s", want, diff)
		}
	}
	files, err := gitFiles(work)(ctx)
	slices.Sort(files)
	if err != nil || strings.Join(files, " ") != "a.txt new.txt" {
		t.Errorf("files %q, %v", files, err)
	}
	if _, err := gitFiles(t.TempDir())(ctx); err == nil {
		t.Error("files outside a repository")
	}
}

func TestEditorCommand(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sed -i s/a/b/")
	t.Setenv("TMPDIR", t.TempDir())
	cmd, read, err := editorCommand(t.Context(), "a text")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := read(); err != nil || text != "b text" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := read(); err == nil {
		t.Error("the file is left")
	}
	t.Setenv("EDITOR", "")
	t.Setenv("PATH", t.TempDir())
	if _, _, err := editorCommand(t.Context(), ""); err == nil {
		t.Error("there is an editor where there is none")
	}
}

func TestProcessName(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	got := processName(cmd.Process.Pid)
	for got == "" { // the kernel is about to start the program: it has no arguments yet
		runtime.Gosched()
		got = processName(cmd.Process.Pid)
	}
	if got != "sleep 600" {
		t.Errorf("the name is %q", got)
	}
	if got := processName(1 << 30); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
