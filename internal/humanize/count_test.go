package humanize

import "testing"

func TestCount(t *testing.T) {
	for _, tc := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "file", "0 files"},
		{1, "file", "1 file"},
		{2, "file", "2 files"},
		{1, "process", "1 process"},
		{2, "process", "2 processes"},
		{1, "more line", "1 more line"},
	} {
		if got := Count(tc.n, tc.noun); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
