package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// checkNPM installs the packages with npm and ends the launcher in each way.
func checkNPM(t *testing.T, dir string) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm here")
	}
	home := t.TempDir()
	h := npmNames[host()]
	cmd := exec.Command("npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", home,
		filepath.Join(dir, "fermata-agent-fermata-1.2.3.tgz"), filepath.Join(dir, "fermata-agent-fermata-"+h.os+"-"+h.arch+"-1.2.3.tgz"))
	cmd.Env = append(os.Environ(), "npm_config_cache="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	program := filepath.Join(home, "node_modules", ".bin", "fermata")
	if out, err := exec.Command(program).Output(); err != nil || string(out) != "v1.2.3\n" {
		t.Errorf("printed %q, error %v", out, err)
	}
	t.Run("exit code", func(t *testing.T) {
		var exit *exec.ExitError
		if err := exec.Command(program, "exit", "42").Run(); !errors.As(err, &exit) || exit.ExitCode() != 42 {
			t.Errorf("error %v, want exit code 42", err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		var exit *exec.ExitError
		err := exec.Command(program, "die").Run()
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("error %v, want killed", err)
		}
	})
	for name, c := range map[string]struct {
		signal syscall.Signal
		want   string
	}{
		"terminated":    {syscall.SIGTERM, "terminated"},
		"interrupted":   {syscall.SIGINT, "interrupt"},
		"launcher dies": {syscall.SIGKILL, "launcher ended"},
	} {
		t.Run(name, func(t *testing.T) { endLauncher(t, program, c.signal, c.want) })
	}
}

// endLauncher sends a signal to the launcher alone, and looks at how the program ended.
func endLauncher(t *testing.T, program string, sig syscall.Signal, want string) {
	result := filepath.Join(t.TempDir(), "result")
	if err := syscall.Mkfifo(result, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "wait", result)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "waits\n" {
		t.Fatalf("read %q, error %v", line, err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(result) // waits until the program has written it
	_ = cmd.Wait()
	if err != nil || string(text) != want {
		t.Errorf("it ended by %q, want %q (error %v)", text, want, err)
	}
}
