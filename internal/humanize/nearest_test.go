package humanize

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"model", "model_provider", "approval_policy", "sandbox_mode", "notify", "tools", "tui"}
	for name, want := range map[string]string{
		"modle": "model", "mdel": "model", "Model": "model", "approval-policy": "approval_policy", "aproval_polcy": "approval_policy",
		"sandbox": "", "zzz": "", "tol": "tools", "ntify": "notify", "x": "", "tiu": "tui", "": "", strings.Repeat("model", 1000): "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%.40q) = %q, want %q", name, got, want)
		}
	}
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"ab", "ba"}: 1, {"abc", "acb"}: 1, {"kitten", "sitting"}: 3, {"é", "e"}: 1, {"abcd", "badc"}: 2,
	} {
		if got := Distance(pair[0], pair[1]); got != want {
			t.Errorf("distance%q = %d, want %d", pair, got, want)
		}
		if got := Distance(pair[1], pair[0]); got != want {
			t.Errorf("distance the other way round%q = %d, want %d", pair, got, want)
		}
	}
}
