package proc

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// A tree is halted where neither a scope of signals nor a cgroup kills all of it at once.
func TestMustHalt(t *testing.T) {
	for name, c := range map[string]struct {
		s    *supervisor
		want bool
	}{
		"nothing kills all": {&supervisor{}, true},
		"scoped":            {&supervisor{scoped: true}, false},
		"cgroup":            {&supervisor{group: &tree.Cgroup{}}, false},
	} {
		if got := c.s.mustHalt(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
