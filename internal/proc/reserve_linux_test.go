package proc

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A command may have fewer processes than the user: what ends it needs some, too.
func TestRoomIsKept(t *testing.T) {
	needs(t, "bash")
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		t.Skipf("there is no limit of processes here: %v", err)
	}
	most := limit.Cur - min(64, limit.Cur/8)
	s := newSpawner(t)
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			spec := Spec{Argv: []string{"bash", "-c", "ulimit -Su"}}
			mode.apply(t, &spec)
			r, out := runSpec(t, s, spec)
			if n, err := strconv.ParseUint(strings.TrimSpace(out.Stdout()), 10, 64); err != nil || n > most {
				t.Errorf("%+v: the command may have %q processes, want at most %d of %d", r, out.Stdout(), most, limit.Cur)
			}
		})
	}
}
