package file_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// A process that watches a conversation is told what another one does to it, whether the system reports it or not.
func TestWatch(t *testing.T) {
	t.Run("reported", func(t *testing.T) { testWatch(t, file.Options{}) })
	t.Run("polled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { testWatch(t, file.Options{Poll: true}) })
	})
}

func testWatch(t *testing.T, o file.Options) {
	home := t.TempDir()
	theirs, ours := file.New(home, file.Options{}), file.New(home, o)
	j, err := theirs.Create(t.Context(), sampleID, time.Now())
	must(t, err)
	changed, stop := ours.Watch(t.Context(), sampleID)
	defer stop()
	another, stopAnother := ours.Watch(t.Context(), sampleID)

	append1 := func() { j.Append(journal.Entry{Kind: "test", Body: benchBody}) }
	append1()
	for _, c := range []<-chan struct{}{changed, another} {
		if _, ok := <-c; !ok {
			t.Fatal("watching ended when something was appended")
		}
	}
	stopAnother()
	stopAnother() // again is no harm
	append1()
	<-changed

	must(t, j.Close())
	must(t, theirs.Archive(t.Context(), sampleID))
	for range changed { // it is closed when the journal has gone elsewhere
	}
	changed, stop = ours.Watch(t.Context(), sampleID)
	defer stop()
	must(t, theirs.Delete(t.Context(), sampleID))
	for range changed {
	}
	if changed, _ := ours.Watch(t.Context(), sampleID); changed != nil {
		t.Error("a deleted conversation can be watched")
	}
}

// Watching takes one descriptor for all conversations, and none when it is over.
func TestWatchingManyTakesOneDescriptor(t *testing.T) {
	s := file.New(t.TempDir(), file.Options{})
	var stops []func()
	before := descriptors(t)
	for i := range 50 {
		id := sampleID[:len(sampleID)-2] + string("0123456789"[i/10]) + string("0123456789"[i%10])
		j, err := s.Create(t.Context(), id, time.Now().AddDate(0, 0, -i%3))
		must(t, err)
		must(t, j.Close())
		_, stop := s.Watch(t.Context(), id)
		stops = append(stops, stop)
	}
	if n := descriptors(t) - before; n != 1 {
		t.Errorf("50 watched conversations take %d descriptors, want 1", n)
	}
	for _, stop := range stops {
		stop()
	}
	if n := descriptors(t) - before; n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no /proc/self/fd")
	}
	return len(list)
}
