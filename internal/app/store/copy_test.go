package store

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/journal"
)

func TestChosen(t *testing.T) {
	infos := []journal.Info{{ID: "a1"}, {ID: "a2"}, {ID: "b1"}}
	for _, c := range []struct {
		name string
		ids  []string
		want int
		err  string
	}{
		{"all", nil, 3, ""},
		{"one", []string{"a2"}, 1, ""},
		{"the beginning of two", []string{"a"}, 2, ""},
		{"twice the same", []string{"a", "a1"}, 2, ""},
		{"none", []string{"b", "x"}, 0, "there is no conversation x"},
	} {
		got, err := chosen(infos, c.ids)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
			continue
		}
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}
