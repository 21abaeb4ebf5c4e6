package app

import (
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// A model is offered one way to run commands, not both: it would mix them up.
func TestOneFlavourOfShell(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		cfg := &config.Config{UseExecCommandTool: terminal}
		kit := &toolkit{config: cfg, models: &Models{config: cfg}}
		var names []string
		for _, tl := range kit.tools(p.Settings{}) {
			names = append(names, tl.Spec().Name)
		}
		for name, want := range map[string]bool{"shell": !terminal, "exec_command": terminal, "write_stdin": terminal} {
			if slices.Contains(names, name) != want {
				t.Errorf("exec_command wanted %t: %s among %q, want it %t", terminal, name, names, want)
			}
		}
	}
}
