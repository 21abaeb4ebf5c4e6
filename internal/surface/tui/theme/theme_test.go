package theme

import (
	"strings"
	"testing"
)

func TestPaint(t *testing.T) {
	dark := New(Options{Dark: true, Color: true})
	light := New(Options{Color: true})
	mono := New(Options{Dark: true})
	for _, tt := range []struct{ name, got, want string }{
		{"text", dark.Paint(Text, "x"), "x"},
		{"nothing", dark.Paint(Error, ""), ""},
		{"dark", dark.Paint(Error, "x"), "\x1b[38;5;203mx\x1b[39m"},
		{"light", light.Paint(Error, "x"), "\x1b[38;5;160mx\x1b[39m"},
		{"no colours", mono.Paint(Error, "x"), "x"},
		{"bold", mono.Paint(Bold, "x"), "\x1b[1mx\x1b[22m"},
		{"selection without colours", mono.Paint(Selected, "x"), "\x1b[7mx\x1b[27m"},
		{"link without colours", mono.Paint(Link, "x"), "\x1b[4mx\x1b[24m"},
		{"two marks", dark.Paint(User, "x"), "\x1b[1m\x1b[38;5;75mx\x1b[39m\x1b[22m"},
		{"nested", dark.Paint(Dim, "a"+dark.Paint(Error, "b")+"c"), "\x1b[38;5;245ma\x1b[38;5;203mb\x1b[39m\x1b[38;5;245mc\x1b[39m"},
		{"lines", dark.Paint(Error, "a\nb"), "\x1b[38;5;203ma\x1b[39m\n\x1b[38;5;203mb\x1b[39m"},
		{"no theme", (*Theme)(nil).Paint(Error, "x"), "x"},
		{"unknown role", dark.Paint(roles, "x"), "x"},
		{"below all roles", dark.Paint(-1, "x"), "x"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if !dark.Colored() || mono.Colored() || (*Theme)(nil).Colored() {
		t.Error("a theme does not know whether it has colours")
	}
}

// Every role but plain text looks like something, on either background, and
// without colours nothing of a colour is left.
func TestEveryRoleHasALook(t *testing.T) {
	for r := Text + 1; r < roles; r++ {
		for _, dark := range []bool{true, false} {
			if New(Options{Dark: dark, Color: true}).Paint(r, "x") == "x" {
				t.Errorf("role %d looks plain (dark %v)", r, dark)
			}
			if got := New(Options{Dark: dark}).Paint(r, "x"); strings.Contains(got, "38;") || strings.Contains(got, "48;") {
				t.Errorf("role %d has a colour without colours: %q", r, got)
			}
		}
	}
}
