package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/policy"
	p "github.com/fermata-agent/fermata/protocol"
)

func openDemo(t *testing.T, o limits.Options) *App {
	t.Helper()
	a, err := Open(t.Context(), Options{Flags: config.Flags{Demo: true}, Limits: o, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// An owner that is joined would not keep the limits that a server has for its clients.
func TestServersWithLimitsDoNotJoin(t *testing.T) {
	t.Setenv("FERMATA_HOME", t.TempDir())
	owner := openDemo(t, limits.Options{})
	id, err := owner.Engine.Create(t.Context(), p.Settings{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Engine.Submit(t.Context(), id, p.UserTurn{Content: p.Text("wait 600")}); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]limits.Options{"another terminal": {}, "a server": {Clients: true}} {
		if snap, err := openDemo(t, o).Engine.Resume(t.Context(), id); err != nil || !snap.Active {
			t.Errorf("%s: %+v, %v", name, snap, err)
		}
	}
	var locked *engine.LockedError
	if _, err := openDemo(t, limits.Options{Clients: true, MaxSandbox: "read-only"}).Engine.Resume(t.Context(), id); !errors.As(err, &locked) {
		t.Errorf("a server with limits: %v", err)
	}
}

// A process that is done waits for the turns that others began in it, and for nothing else.
func TestAwaitTurns(t *testing.T) {
	t.Setenv("FERMATA_HOME", t.TempDir())
	owner := openDemo(t, limits.Options{})
	id, err := owner.Engine.Create(t.Context(), p.Settings{Cwd: t.TempDir(), Approval: p.ApprovalUntrusted})
	if err != nil {
		t.Fatal(err)
	}
	var waited []p.TurnID
	await := func(ctx context.Context, begin func()) {
		t.Helper()
		owner.AwaitTurns(ctx, func(turn p.TurnID) {
			waited = append(waited, turn)
			begin()
		})
	}
	submit := func(op p.Op) {
		t.Helper()
		if _, err := owner.Engine.Submit(t.Context(), id, op); err != nil {
			t.Error(err)
		}
	}
	await(t.Context(), nil) // there is none

	submit(p.UserTurn{Content: p.Text("wait 600")})
	await(t.Context(), func() { submit(p.Interrupt{}) })
	submit(p.UserTurn{Content: p.Text("wait 600")})
	stopped, stop := context.WithCancel(t.Context())
	await(stopped, stop)
	submit(p.Interrupt{})
	submit(p.UserTurn{Content: p.Text("run: touch x")}) // waits for a person
	await(t.Context(), func() {})
	if snap, err := owner.Engine.Resume(t.Context(), id); err != nil || !snap.Waiting {
		t.Errorf("the last turn: %+v, %v", snap, err)
	}
	got := slices.Compact(waited) // the second one may still be stopping, and the third one have begun to wait
	if len(got) < 2 || !slices.Equal(got, []p.TurnID{1, 2, 3}[:len(got)]) {
		t.Errorf("waited for the turns %v", got)
	}
}

// Whoever joins brings overrides and variables, which define no provider where those are limited.
func TestLimitsOfLaunches(t *testing.T) {
	t.Setenv("TENANT", "ours")
	t.Setenv("REGION", "ours")
	home := t.TempDir()
	text := "[model_providers.one]\nbase_url = 'https://example.com/{REGION}/v1'\nwire_api = 'chat'\n[model_providers.two]\nbase_url = 'https://example.com/{TENANT}/v1'\nwire_api = 'chat'\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &shared{limits: limits.Limiter{Limits: policy.Limits{Providers: []string{"openai"}}}}
	for _, c := range []struct {
		name    string
		from    clientEnvironment
		refused bool
	}{
		{"nothing", clientEnvironment{}, false},
		{"other settings", clientEnvironment{Overrides: []string{"model=\"m\""}, Env: []string{"X=1"}}, false},
		{"a provider", clientEnvironment{Overrides: []string{`model_providers.openai.base_url="http://127.0.0.1:1/v1"`}}, true},
		{"a quoted key", clientEnvironment{Overrides: []string{` "model_providers" .openai.base_url="http://127.0.0.1:1/v1"`}}, true},
		{"the short key", clientEnvironment{Overrides: []string{`openai_base_url="http://127.0.0.1:1/v1"`}}, true},
		{"a variable", clientEnvironment{Env: []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}}, true},
		{"a port", clientEnvironment{Env: []string{"CODEX_OSS_PORT=1"}}, true},
		{"a part of an address", clientEnvironment{Env: []string{"AZURE_RESOURCE_NAME=mine"}}, true},
		{"a part of a configured address", clientEnvironment{Env: []string{"REGION=mine"}}, true},
		{"a part of an address that is the owner's", clientEnvironment{Env: []string{"TENANT=ours"}}, false},
	} {
		c.from.Env = append(c.from.Env, "FERMATA_HOME="+home, "OPENAI_API_KEY=k")
		loaded, err := load(Options{Dir: t.TempDir(), Overrides: c.from.Overrides}, c.from.getenv)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.allowLaunch(c.from, loaded); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
