package proc

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimesOfSpec(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		spec Spec
		want order
	}{
		{"defaults", Spec{}, order{Grace: 100 * ms, Linger: 100 * ms, Bound: 1500 * ms}},
		{"none", Spec{Grace: -1, Linger: -1, Bound: -1}, order{Bound: 1500 * ms}},
		{"chosen", Spec{Grace: 300 * ms, Linger: 5 * ms, Bound: 4000 * ms}, order{Grace: 300 * ms, Linger: 5 * ms, Bound: 3000 * ms}},
		{"the grace leaves time to kill", Spec{Grace: time.Hour, Bound: 400 * ms}, order{Grace: 200 * ms, Linger: 100 * ms, Bound: 300 * ms}},
	} {
		if d := cmp.Diff(c.want, c.spec.order(nil)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestFailureCrossesTheWire(t *testing.T) {
	_, err := os.Open("/no/such/file")
	got := (*startError)(failureOf(err))
	if !errors.Is(got, fs.ErrNotExist) || got.Error() != "start command: open /no/such/file: no such file or directory" {
		t.Errorf("error %q", got)
	}
	plain := (*startError)(failureOf(errors.New("plain")))
	if errors.Is(plain, syscall.Errno(0)) || plain.Unwrap() != nil {
		t.Errorf("error %q pretends to have a number", plain)
	}
}

func TestStreamNames(t *testing.T) {
	if Stdout.String() != "stdout" || Stderr.String() != "stderr" {
		t.Errorf("streams are called %v and %v", Stdout, Stderr)
	}
}
