package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

func bash(script string) []string { return []string{"/bin/bash", "-c", script} }

func TestOfferPrefix(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"make -n all", "make -n"},
		{"make", "make"},
		{"/usr/bin/make -n", "/usr/bin/make -n"},
		{"go test ./... -run X", "go test"},
		{"cd sub && go test ./...", "go test"},
		{"go test ./a && go test ./b", "go test"},
		{"npm run build -- --watch", "npm run build"},
		{"gh pr create --title x", "gh pr create"},
		{"python3 scripts/gen.py --all", "python3 scripts/gen.py"},
		{"./build.sh release", "./build.sh"},
		{"git push --force origin main", "git push"},

		{"cd /elsewhere && go test ./...", ""},
		{"cd .. && make", ""},
		{"make && npm test", ""},
		{"python3 -c 'import os'", ""},
		{"rm -rf build", ""},
		{"sudo make", ""},
		{"uv run python x.py", ""},
		{"git -C /x push", ""},
		{"make > out", ""},
		{"make $(cat x)", ""},
		{"X=1 make", ""},
		{"ls", ""},
		{"m* x", ""},
		{"make & rm x", ""},
		{"xargs rm", ""},
		{"", ""},
	} {
		got, ok := OfferPrefix(bash(c.script))
		if strings.Join(got, " ") != c.want || ok != (c.want != "") {
			t.Errorf("%q: got %q %v, want %q", c.script, got, ok, c.want)
		}
	}
}

func TestPrefixesDecide(t *testing.T) {
	rules := []PrefixRule{
		NewPrefix([]string{"make", "-n"}),
		NewPrefix([]string{"go", "test"}),
		{Pattern: [][]string{{"git"}, {"push", "fetch"}}, Decision: PrefixPrompt},
		{Pattern: [][]string{{"git"}, {"push"}, {"--force"}}, Decision: PrefixForbid, Why: "use a branch"},
	}
	for _, c := range []struct {
		script string
		want   PrefixDecision
	}{
		{"make -n", PrefixAllow},
		{"make -n all", PrefixAllow},
		{"/usr/bin/make -n all", PrefixAllow},
		{"cd sub && make -n && ls", PrefixAllow},
		{"go test ./... | tail -3", PrefixAllow},
		{"git push", PrefixPrompt},
		{"make -n && git fetch", PrefixPrompt},
		{"git push --force", PrefixForbid},
		{"ls; git push --force", PrefixForbid},

		{"make", ""},
		{"make all -n", ""},
		{"./make -n", ""},
		{"cd /tmp && make -n", ""},
		{"cd sub/../.. && make -n", ""},
		{"make -n && rm x", ""},
		{"make -n > x", ""},
		{"make -n $(rm x)", ""},
		{"make -n & rm x", ""},
		{"X=1 make -n", ""},
		{"make -[n]", ""},
		{"make -n && git diff", ""},
		{"ls", ""},
	} {
		got, _ := decidePrefix(rules, bash(c.script))
		if got.Decision != c.want {
			t.Errorf("%q: got %q, want %q", c.script, got.Decision, c.want)
		}
	}
}

// Whatever is offered for a command allows that command.
func TestAnOfferedPrefixAllowsItsCommand(t *testing.T) {
	for _, script := range []string{"make -n all", "cd sub && go test ./...", "npm run build", "python3 x.py", "git push"} {
		offer, ok := OfferPrefix(bash(script))
		if !ok {
			t.Fatalf("%q: nothing is offered", script)
		}
		rule, _ := decidePrefix([]PrefixRule{NewPrefix(offer)}, bash(script))
		if rule.Decision != PrefixAllow {
			t.Errorf("%q: %q does not allow it", script, offer)
		}
	}
}

func TestPrefixRulesInTheTable(t *testing.T) {
	prefixes := []PrefixRule{
		NewPrefix([]string{"make"}),
		{Pattern: [][]string{{"ls"}}, Decision: PrefixPrompt},
		{Pattern: [][]string{{"cat"}}, Decision: PrefixForbid, Why: "no cats"},
	}
	for _, policy := range []protocol.ApprovalPolicy{"untrusted", "on-failure", "on-request", "never"} {
		r := Rules{Approval: policy, Mode: protocol.SandboxReadOnly, Confinable: true, Prefixes: prefixes}
		got := []Verdict{
			r.Command(CommandRequest{Argv: []string{"make", "x"}}).Verdict,
			r.Command(CommandRequest{Argv: []string{"ls"}}).Verdict,
			r.Command(CommandRequest{Argv: []string{"ls"}, Answer: protocol.Approved}).Verdict,
			r.Command(CommandRequest{Argv: []string{"cat", "x"}, Answer: protocol.Approved}).Verdict,
			r.Command(CommandRequest{Argv: []string{"make", "x"}, Answer: protocol.Denied}).Verdict,
		}
		want := []Verdict{RunUnconfined, Ask, RunUnconfined, Refuse, Refuse}
		if policy == protocol.ApprovalNever {
			want[1] = Refuse
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", policy, got, want)
		}
	}
	inside := Rules{Mode: protocol.SandboxReadOnly, Confinable: true, Prefixes: prefixes, NoEscalation: true}
	if got := inside.Command(CommandRequest{Argv: []string{"make", "x"}}).Verdict; got != RunConfined {
		t.Errorf("where nothing may leave the sandbox: got %v", got)
	}
	if got := inside.Command(CommandRequest{Argv: []string{"cat", "x"}}); !strings.HasSuffix(got.Text, ": no cats") || got.Reason != protocol.RefusedByRule {
		t.Errorf("got %v", got)
	}
}
