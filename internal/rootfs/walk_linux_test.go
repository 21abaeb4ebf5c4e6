package rootfs

import "testing"

func forceWalk(t *testing.T) {
	walks.Store(true)
	t.Cleanup(func() { walks.Store(false) })
}
