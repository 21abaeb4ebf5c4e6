package alias

import (
	"slices"
	"testing"
)

func TestOtherMounts(t *testing.T) {
	mounts := parse(`22 1 8:1 / / rw - ext4 /dev/a rw
23 22 8:2 / /home rw - ext4 /dev/b rw
24 22 8:2 /me/my\040project /work rw - ext4 /dev/b rw
25 22 8:2 / /everything rw - ext4 /dev/b rw
26 22 8:2 /other /other rw - ext4 /dev/b rw
27 25 8:3 / /everything/me rw - ext4 /dev/c rw
`)
	same := func(a, _ string) bool { return a != "/everything/me/my project/token" } // /everything/me is another file system
	got := among([]string{"/home/me/my project/token", "/home/me/.fermata/run"}, mounts, same)
	want := []string{"/home/me/my project/token", "/home/me/.fermata/run", "/work/token", "/everything/me/.fermata/run"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
