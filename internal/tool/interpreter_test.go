package tool

import (
	"slices"
	"testing"
)

func TestInterpreter(t *testing.T) {
	for want, there := range map[string][]string{
		"/bin/bash":                       {"/bin/sh", "/usr/bin/bash", "/bin/bash"},
		"/run/current-system/sw/bin/bash": {"/bin/sh", "/run/current-system/sw/bin/bash"},
		"/bin/sh":                         {"/bin/sh"},
	} {
		if got := interpreter(func(name string) bool { return slices.Contains(there, name) }); got != want {
			t.Errorf("of %q: %s, want %s", there, got, want)
		}
	}
	if got := interpreter(func(string) bool { return false }); got != "/bin/bash" {
		t.Errorf("without any: %s", got)
	}
}
