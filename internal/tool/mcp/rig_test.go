package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
)

// A rig is a set of servers, and a conversation that calls their tools.
type rig struct {
	*Servers
	notes string // what the servers noted

	mu      sync.Mutex
	records []protocol.Body
	written string

	answer func(ctx context.Context, q protocol.ElicitationRequested) (protocol.ElicitationResolved, error)
}

func open(t testing.TB, defs map[string]config.MCPServer) *rig {
	t.Helper()
	return openIn(t, t.TempDir(), "", defs)
}

// openIn opens servers that work in a directory and keep their lists in another.
func openIn(t testing.TB, dir, cache string, defs map[string]config.MCPServer) *rig {
	t.Helper()
	spawner, err := proc.NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(spawner.Close)
	notes := filepath.Join(dir, "notes")
	for name, d := range defs {
		if d.Env == nil {
			d.Env = map[string]config.Secret{}
		}
		d.Env["NOTES"] = config.NewSecret(notes)
		defs[name] = d
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "PASSED": "yes", "SECRET": "leaked"}
	r := &rig{notes: notes}
	r.Servers = Open(t.Context(), defs, Options{Spawner: spawner, Dir: dir, Cache: cache, Getenv: func(name string) string { return env[name] }, Version: "test"})
	t.Cleanup(r.Close)
	return r
}

// self is a definition of the test binary as a server.
func self(t testing.TB, mode string) config.MCPServer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return config.MCPServer{Command: exe, StartupTimeout: 5 * time.Minute, Env: map[string]config.Secret{serverVariable: config.NewSecret(mode)}}
}

// start waits for the servers and returns the warnings.
func (r *rig) start(t testing.TB) []string {
	t.Helper()
	wait := r.Await("/w")
	if wait == nil {
		t.Fatal("there is nothing to wait for")
	}
	warnings, err := wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return warnings
}

func (r *rig) names() string {
	var names []string
	for _, t := range r.Tools("/w", nil) {
		names = append(names, t.Spec().Name)
	}
	return strings.Join(names, " ")
}

func (r *rig) call(ctx context.Context, t testing.TB, name, arguments string, set ...func(*tool.Call)) tool.Result {
	t.Helper()
	found := tool.Find(r.Tools("/w", nil), name)
	if found == nil {
		t.Fatalf("there is no tool %s", name)
	}
	c := tool.Call{ID: protocol.CallID{Turn: 1, Response: 1}, Name: name, Arguments: arguments, Host: r}
	c.Settings.Approval, c.Settings.Cwd = protocol.ApprovalOnRequest, "/w"
	for _, f := range set {
		f(&c)
	}
	return tool.Run(ctx, found, c)
}

func (r *rig) noted() string {
	b, _ := os.ReadFile(r.notes)
	return string(b)
}

func (r *rig) Write(kind protocol.DeltaKind, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written += string(kind) + ":" + text
}

func (r *rig) Elicit(ctx context.Context, q protocol.ElicitationRequested) (protocol.ElicitationResolved, error) {
	return r.answer(ctx, q)
}

func (r *rig) Record(_ context.Context, b protocol.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, b)
	return nil
}

func (r *rig) Keep(context.Context, protocol.BackgroundStarted, tool.Background) (protocol.BackgroundID, func(protocol.DeltaKind, string), error) {
	panic("no background commands here")
}

func (r *rig) Output(context.Context, protocol.CallID) (string, error) { panic("not asked here") }

// waiting starts a call of the tool that waits, and returns what it returned and the
// processes of the server.
func (r *rig) waiting(ctx context.Context, t *testing.T) (<-chan tool.Result, []tree.Identity) {
	t.Helper()
	done := make(chan tool.Result, 1)
	go func() { done <- r.call(ctx, t, "s__wait", "{}") }()
	pids := make([]int, 2)
	until(t, "the call", func() bool {
		n, _ := fmt.Sscanf(after(r.noted(), "waiting "), "%d %d", &pids[0], &pids[1])
		return n == 2
	})
	list := []tree.Identity{{PID: pids[0]}, {PID: pids[1]}}
	for i := range list {
		if err := tree.Identify(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return done, list
}

// runs reports whether that very process runs. Only Linux can tell it from a later one with the same number.
func runs(p tree.Identity) bool {
	if runtime.GOOS != "linux" {
		return syscall.Kill(p.PID, 0) == nil
	}
	return tree.Running(p)
}

// after is what comes after the first mark in a text.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}
