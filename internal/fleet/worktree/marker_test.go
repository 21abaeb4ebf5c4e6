package worktree

import "testing"

// A work tree continues what is kept if that is the same state of the same store: a copy of the store may have another state under the same revision.
func TestMarkerOfAnotherStore(t *testing.T) {
	kept := Tree{Revision: 5, Bundle: "b"}
	for name, c := range map[string]struct {
		m    marker
		want bool
	}{
		"the same":                       {markerOf(kept), true},
		"an earlier revision":            {marker{Revision: 4, Bundle: "b"}, false},
		"another bundle":                 {marker{Revision: 5, Bundle: "a"}, false},
		"no bundle":                      {markerOf(Tree{Revision: 5}), false},
		"a marker of an earlier version": {marker{Revision: 5}, true},
	} {
		if got := c.m.continues(kept); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if first := (Tree{Revision: 1}); !markerOf(first).continues(first) {
		t.Error("a work tree without changes does not continue itself")
	}
}
