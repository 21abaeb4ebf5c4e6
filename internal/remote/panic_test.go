package remote_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/remote"
	p "github.com/fermata-agent/fermata/protocol"
)

// A defect that shows in a request or a stream of a process that has joined is an error there. The connection and other
// conversations go on.
func TestPanicIsAnErrorOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, enginetest.Options{})
		faulty := &enginetest.Faulty{Engine: e, ID: e.Begin()}
		s := remote.NewServer(faulty, "test")
		var traces atomic.Int32
		s.Panicked = func(any, []byte) { traces.Add(1) }
		ours, theirs := net.Pipe()
		go func() { _ = s.ServeConn(t.Context(), theirs) }() // ends with ours
		joined, err := remote.Connect(t.Context(), ours, remote.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer joined.Close()
		faulty.Broken.Store(true)
		_, resumed := joined.Resume(t.Context(), faulty.ID)
		_, submitted := joined.Submit(t.Context(), faulty.ID, p.Interrupt{})
		var followed error
		for _, err := range joined.Subscribe(t.Context(), faulty.ID, 0) {
			followed = err
		}
		for name, err := range map[string]error{"resume": resumed, "submit": submitted, "follow": followed, "archive": joined.Archive(t.Context(), faulty.ID)} {
			if err == nil || !strings.Contains(err.Error(), "internal error: a defect") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if traces.Load() != 4 {
			t.Errorf("%d traces", traces.Load())
		}
		faulty.Broken.Store(false)
		if _, err := joined.Resume(t.Context(), faulty.ID); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
