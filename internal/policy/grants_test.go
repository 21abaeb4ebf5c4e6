package policy

import (
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

func TestGrantsCompareArgumentsAndDirectory(t *testing.T) {
	g := Grants{}.With([]string{"make", "a b"}, "/w/")
	for _, c := range []struct {
		argv []string
		cwd  string
		want bool
	}{
		{[]string{"make", "a b"}, "/w", true},
		{[]string{"make", "a b"}, "/w/x/..", true},
		{[]string{"make", "a b"}, "/w/x", false},
		{[]string{"make", "a b"}, "/", false},
		{[]string{"make", "a b"}, "", false},
		{[]string{"make", "a", "b"}, "/w", false},
		{[]string{"make a b"}, "/w", false},
		{[]string{"make", "a b", ""}, "/w", false},
		{[]string{"make"}, "/w", false},
		{[]string{"Make", "a b"}, "/w", false},
		{nil, "/w", false},
	} {
		if got := g.Has(c.argv, c.cwd); got != c.want {
			t.Errorf("Has(%q, %q) = %v", c.argv, c.cwd, got)
		}
	}
	if (Grants{}).Has([]string{"make"}, "/w") {
		t.Error("the zero value has a grant")
	}
}

// Whatever arguments contain, two commands are never taken for one.
func TestGrantsAreNotConfusedBySeparators(t *testing.T) {
	lists := [][]string{
		{"a", "b"}, {"a\x00b"}, {"ab"}, {"a", "", "b"}, {"", "ab"}, {"1:a", "1:b"}, {"a1:b"}, {"a,1:b"}, {"a:b"}, {"a", ":b"}, {"2:/w1:a"}, {"a", "b", ""}, {},
	}
	for i, one := range lists {
		g := Grants{}.With(one, "/w")
		for j, other := range lists {
			if got, want := g.Has(other, "/w"), i == j && len(one) > 0; got != want {
				t.Errorf("with %q: Has(%q) = %v", one, other, got)
			}
		}
	}
	if (Grants{}).With([]string{"b"}, "/w1:a").Has([]string{"a", "b"}, "/w") {
		t.Error("directory and argument are confused")
	}
}

func TestGrantsNeverChange(t *testing.T) {
	zero := Grants{}
	one := zero.With([]string{"a"}, "/w")
	two := one.With([]string{"b"}, "/w")
	three := one.With([]string{"c"}, "/w")
	if zero.Len() != 0 || one.Len() != 1 || two.Len() != 2 || three.Len() != 2 {
		t.Errorf("%d %d %d %d grants", zero.Len(), one.Len(), two.Len(), three.Len())
	}
	if one.Has([]string{"b"}, "/w") || two.Has([]string{"c"}, "/w") || !two.Has([]string{"a"}, "/w") {
		t.Error("a grant got into another value, or lost")
	}
	argv := []string{"x", "y"}
	g := zero.With(argv, "/w")
	argv[1] = "z"
	if !g.Has([]string{"x", "y"}, "/w") || g.Has(argv, "/w") {
		t.Error("a grant changed with the slice it was made of")
	}
	if again := g.With([]string{"x", "y"}, "/w/."); again.Len() != 1 {
		t.Errorf("the same twice makes %d", again.Len())
	}
}

func TestOnlyApprovedForSessionIsRemembered(t *testing.T) {
	for d, want := range map[protocol.Decision]int{
		protocol.Approved: 0, protocol.ApprovedForSession: 1, protocol.Denied: 0, protocol.Abort: 0, protocol.Cancelled: 0, "": 0,
	} {
		if got := (Grants{}).Answered(d, []string{"make"}, "/w").Len(); got != want {
			t.Errorf("%q: %d grants, want %d", d, got, want)
		}
	}
}
