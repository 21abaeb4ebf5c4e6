package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
)

// One process serves: a second one learns that at once, and can serve when the first has left.
func TestOneServes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	l := listen(t, dir, enginetest.New(t, enginetest.Options{}))
	if s, ok := remote.FindServe(dir); ok {
		t.Errorf("nobody serves, and %+v was found", s)
	}
	leave, err := remote.ClaimServe(dir, remote.Served{PID: os.Getpid(), Address: l.Address()})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := remote.FindServe(dir); !ok || s != (remote.Served{PID: os.Getpid(), Address: l.Address()}) {
		t.Errorf("found %+v, %v", s, ok)
	}
	if _, err := remote.ClaimServe(dir, remote.Served{Address: "other"}); !errors.Is(err, remote.ErrServed) {
		t.Errorf("a second one serves: %v", err)
	}
	leave()
	if s, ok := remote.FindServe(dir); ok {
		t.Errorf("it has left, and %+v was found", s)
	}
	leave, err = remote.ClaimServe(dir, remote.Served{PID: os.Getpid(), Address: l.Address()})
	if err != nil {
		t.Fatalf("after the first one has left: %v", err)
	}
	leave()
}
