package policy

import (
	"slices"
	"testing"
)

// Programs take the beginning of an option for the option. Whatever may be
// short for a dangerous one is refused, unless it is an option in its own right.
func TestAbbreviationsAreRefused(t *testing.T) {
	own := set("text no-text") // git diff --text is not short for --textconv
	for _, c := range []struct {
		command   []string
		dangerous []string
	}{
		{[]string{"rg", "x"}, []string{"pre", "pre-glob", "hostname-bin", "search-zip"}},
		{[]string{"git", "log"}, []string{"output", "ext-diff", "textconv", "show-signature", "remerge-diff", "stdin", "help", "submodule"}},
		{[]string{"git", "show"}, []string{"output", "ext-diff", "textconv", "show-signature"}},
		{[]string{"git", "diff"}, []string{"output", "ext-diff", "textconv", "submodule"}},
		{[]string{"git", "branch"}, []string{"delete", "move", "copy", "force", "edit-description", "set-upstream-to", "unset-upstream", "track", "create-reflog"}},
		{[]string{"git", "status"}, []string{"output", "help"}},
	} {
		for _, name := range c.dangerous {
			for n := 1; n <= len(name); n++ {
				if own[name[:n]] {
					continue
				}
				for _, form := range [][]string{{"--" + name[:n]}, {"--" + name[:n] + "=x"}, {"--" + name[:n], "x"}} {
					if argv := slices.Concat(c.command, form); Safe(argv) {
						t.Errorf("Safe(%q)", argv)
					}
				}
			}
		}
	}
}

func TestOptions(t *testing.T) {
	o := options{"ab:c", "long value="}
	for arg, want := range map[string]bool{
		"-": true, "--": true, "-a": true, "-ac": true, "-bz": true, "-abz": true, "-cbz": true, "-b": true,
		"-z": false, "-az": false, "-caz": false, "-:": false, "-a:": false, "-é": false,
		"--long": true, "--long=x": true, "--value=x": true, "--value=": true,
		"--value": false, "--lon": false, "--longer": false, "--lon=g": false, "--Long": false, "--=x": false, "---": false, "--long ": false,
	} {
		if got := o.has(arg); got != want {
			t.Errorf("has(%q) = %v", arg, got)
		}
	}
	if o.rule([]word{{"-a*", 2}}) || o.rule([]word{{"*", 0}}) || !o.rule([]word{{"x*", 1}, {"-a", 2}}) {
		t.Error("patterns are not told apart")
	}
}
