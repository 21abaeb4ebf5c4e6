package oneoff

import (
	"strings"
	"testing"
)

// What a client changes of the environment of a command replaces what is there, adds to it, or takes it out.
func TestChangeEnv(t *testing.T) {
	for name, tt := range map[string]struct {
		changes map[string]*string
		want    string // after fail: the error
	}{
		"nothing": {nil, "A=1 B=2=3 A=4"},
		"set":     {map[string]*string{"C": new("5"), "AB": new("")}, "A=1 B=2=3 A=4 AB= C=5"},
		"replace": {map[string]*string{"A": new("x=y")}, "B=2=3 A=x=y"},
		"unset":   {map[string]*string{"A": nil, "Z": nil}, "B=2=3"},
		"no name": {map[string]*string{"": nil}, `fail env: "" cannot be the name of a variable`},
		"bad":     {map[string]*string{"A=1": new("2")}, `fail env: "A=1" cannot be the name of a variable`},
		"NUL":     {map[string]*string{"A": new("1\x00B=2")}, "fail env: the value of A has a NUL byte"},
	} {
		t.Run(name, func(t *testing.T) {
			env := []string{"A=1", "B=2=3", "A=4"}
			changed, err := changeEnv(env, tt.changes)
			got := strings.Join(changed, " ")
			if err != nil {
				got = "fail " + err.Error()
			}
			if got != tt.want || strings.Join(env, " ") != "A=1 B=2=3 A=4" {
				t.Errorf("got %q, want %q; the environment before: %q", got, tt.want, env)
			}
		})
	}
}
