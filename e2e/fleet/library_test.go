package fleet

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/engine/enginetest"
	"github.com/fermata-agent/fermata/store/nats"
)

// The store that programs of other modules use does what an engine relies on.
func TestStoreOfTheLibrary(t *testing.T) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	enginetest.TestStore(t, func(t testing.TB) engine.Store {
		store := nats.New(t.Context(), nats.Options{URL: s.ClientURL()})
		t.Cleanup(func() { _ = store.Close() })
		return store
	})
}
