package runcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/surface/exec"
	p "github.com/fermata-agent/fermata/protocol"
)

// What helps for a command does not help for a tool of an MCP server.
func TestOnlyToolsWereRefused(t *testing.T) {
	var l refusedCalls
	if l.only(p.RefusedTool) {
		t.Error("nothing was refused")
	}
	l.add(exec.Refusal{What: "docs.write", Why: "it needs an approval", Reason: p.RefusedTool})
	l.add(exec.Refusal{What: "docs.read", Why: "it needs an approval", Reason: p.RefusedTool})
	if !l.only(p.RefusedTool) {
		t.Error("a tool is taken for a command")
	}
	l.add(exec.Refusal{What: "make", Why: "not allowed", Reason: p.RefusedUnasked})
	if l.only(p.RefusedTool) {
		t.Error("a command is taken for a tool")
	}
}

// What no approval would have allowed was not refused because no client could be asked. It goes by the
// reason, not by words, which may be those of a file's name.
func TestRefusalsSayWhy(t *testing.T) {
	const unasked = "fermata: refused, since there is no interactive client:"
	for reason, want := range map[p.RefusalReason]string{
		p.RefusedPath:        unasked,
		p.RefusedByRule:      "fermata: refused:",
		p.RefusedByPlanMode:  "fermata: refused:",
		"":                   unasked, // of a version that recorded none
		"of a later version": unasked,
	} {
		var l refusedCalls
		l.add(exec.Refusal{What: "cat 'plan mode'", Why: "a rule of the user forbids it", Reason: reason})
		var out bytes.Buffer
		l.explain(cli.Streams{Err: &out}, "how")
		if head, _, _ := strings.Cut(out.String(), "\n"); head != want {
			t.Errorf("%s: %q, want %q", reason, head, want)
		}
	}
}
