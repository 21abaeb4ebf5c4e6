package main

import (
	"os/exec"
	"testing"
)

func needsGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
}

// git runs git in a directory. Without it the test is skipped.
func git(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	needsGit(t)
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}
