package cli

import "testing"

func TestLightByEnv(t *testing.T) {
	for v, want := range map[string]bool{"": false, "15;0": false, "0;15": true, "0;default;7": true, "15": false} {
		if lightByEnv(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}
