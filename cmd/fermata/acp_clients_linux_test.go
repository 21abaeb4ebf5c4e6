package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// acpClientsDir is where clients of the Agent Client Protocol are, unchanged and pinned, with the scripts that drive us through them.
const acpClientsDir = "../../e2e/acp"

// installACPClients fetches the clients for TypeScript, if they are not there, once. It does without "npm ci", which refuses the list of versions where a registry has not all
// the packages that acpx names for other systems.
var installACPClients = sync.OnceValue(func() error { return npm(acpClientsDir, "@agentclientprotocol/sdk", "install", "--no-save") })

// installACPPython fetches the client for Python, if it is not there, once.
var installACPPython = sync.OnceValue(func() error {
	if !longtest.On() {
		return longtest.ErrOff
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(acpClientsDir, "python_modules", "acp")); err == nil {
		return nil
	}
	cmd := exec.Command(python, "-m", "pip", "install", "--quiet", "--target", "python_modules", "--requirement", "requirements.txt")
	cmd.Dir = acpClientsDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pip install: %w\n%s", err, out)
	}
	return nil
})

// acpSeen are what the scripts report to have seen.
var acpSeen = []string{"prompt and stream", "permission", "cancel in each phase", "two sessions", "load after kill -9"}

// playACP runs a program in a place and returns what it printed; CLIENTS in its arguments stands for the directory of the clients.
func (pl *place) playACP(name string, args ...string) string {
	pl.t.Helper()
	out, err := pl.tryACP(name, args...)
	if err != nil {
		pl.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return out
}

// tryACP is playACP that returns the error.
func (pl *place) tryACP(name string, args ...string) (string, error) {
	dir, err := filepath.Abs(acpClientsDir)
	if err != nil {
		return "", err
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "CLIENTS", dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = pl.work
	cmd.Env = append(slices.Clone(pl.env), "FERMATA_BIN="+pl.bin, "TMPDIR="+pl.dir, "PYTHONPATH="+filepath.Join(dir, "python_modules"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The official TypeScript client drives us through everything that an editor does.
func TestACPTypeScript(t *testing.T) {
	if err := installACPClients(); err != nil {
		t.Skipf("the TypeScript client of ACP is not tested: %v", err)
	}
	t.Parallel()
	pl := newPlace(t)
	contains(t, "the script", pl.playACP("node", "CLIENTS/client.mjs"), acpSeen...)
	pl.noneLeft(t, nil)
}

// The official Python client does.
func TestACPPython(t *testing.T) {
	if err := installACPPython(); err != nil {
		t.Skipf("the Python client of ACP is not tested: %v", err)
	}
	t.Parallel()
	pl := newPlace(t)
	contains(t, "the script", pl.playACP("python3", "CLIENTS/client.py"), acpSeen...)
	pl.noneLeft(t, nil)
}

// acpx, which drives agents from a shell, runs prompts, keeps sessions and cancels turns.
func TestACPX(t *testing.T) {
	if err := installACPClients(); err != nil {
		t.Skipf("acpx is not tested: %v", err)
	}
	t.Parallel()
	pl := newPlace(t)
	line := func(args ...string) []string {
		return append([]string{"CLIENTS/node_modules/acpx/dist/cli.js", "--agent", pl.bin + " acp --demo", "--approve-all", "--ttl", "30"}, args...)
	}
	acpx := func(args ...string) string { return pl.playACP("node", line(args...)...) }
	contains(t, "exec", acpx("exec", "run: echo hello"), "hello", "end_turn")
	id := strings.TrimSpace(acpx("sessions", "new"))
	id = id[strings.LastIndexByte(id, '\n')+1:]
	contains(t, "the prompt of a session", acpx("talk 4"), "word4", "end_turn")
	long := make(chan string)
	go func() {
		out, err := pl.tryACP("node", line("run: echo begun; sleep 600")...)
		long <- fmt.Sprint(out, err)
	}()
	pl.awaitText(id, "begun\n")
	acpx("cancel")
	contains(t, "the prompt that was cancelled", <-long, "begun", "cancelled")
	contains(t, "the list", acpx("sessions", "list"), id, "talk 4")
	acpx("sessions", "close")
	pl.noneLeft(t, nil)
	pl.fsck(id)
}
