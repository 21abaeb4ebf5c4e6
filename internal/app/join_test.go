package app

import (
	"errors"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/limits"
	"github.com/fermata-agent/fermata/internal/config"
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

// A server has limits for its clients, which an owner that it joined would not
// keep.
func TestServersDoNotJoin(t *testing.T) {
	t.Setenv("FERMATA_HOME", t.TempDir())
	owner, other, server := openDemo(t, limits.Options{}), openDemo(t, limits.Options{}), openDemo(t, limits.Options{Clients: true})
	id, err := owner.Engine.Create(t.Context(), p.Settings{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Engine.Submit(t.Context(), id, p.UserTurn{Content: p.Text("wait 600")}); err != nil {
		t.Fatal(err)
	}
	if snap, err := other.Engine.Resume(t.Context(), id); err != nil || !snap.Active {
		t.Errorf("another terminal: %+v, %v", snap, err)
	}
	var locked *engine.LockedError
	if _, err := server.Engine.Resume(t.Context(), id); !errors.As(err, &locked) {
		t.Errorf("a server: %v", err)
	}
}
