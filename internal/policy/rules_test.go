package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/protocol"
)

var (
	unknownArgv = []string{"make", "install"}
	safeArgv    = []string{"ls", "-l"}
)

// The matrix, written out: for each policy and mode what becomes of a command
// that is unknown, unknown and escalated, safe, safe and escalated, granted;
// each time on a machine that can confine / on one that cannot.
const commandMatrix = `
untrusted  read-only          ask/ask          ask/ask          confined+ask/free  ask/free           free/free
untrusted  workspace-write    ask/ask          ask/ask          confined+ask/free  ask/free           free/free
untrusted  danger-full-access ask/ask          ask/ask          free/free          free/free          free/free
on-failure read-only          confined+ask/ask confined+ask/ask confined+ask/free  confined+ask/free  free/free
on-failure workspace-write    confined+ask/ask confined+ask/ask confined+ask/free  confined+ask/free  free/free
on-failure danger-full-access free/free        free/free        free/free          free/free          free/free
on-request read-only          confined/ask     ask/ask          confined/free      ask/free           free/free
on-request workspace-write    confined/ask     ask/ask          confined/free      ask/free           free/free
on-request danger-full-access free/free        free/free        free/free          free/free          free/free
never      read-only          confined/refuse  confined/refuse  confined/free      confined/free      free/free
never      workspace-write    confined/refuse  confined/refuse  confined/free      confined/free      free/free
never      danger-full-access free/free        free/free        free/free          free/free          free/free
`

var matrixWords = map[string]Verdict{
	"ask": Ask, "refuse": Refuse, "free": RunUnconfined, "confined": RunConfined, "confined+ask": RunConfinedAskOnDenial,
}

type cell struct {
	rules Rules
	req   CommandRequest
	want  Verdict
}

func matrix(t *testing.T) []cell {
	t.Helper()
	requests := []CommandRequest{
		{Argv: unknownArgv},
		{Argv: unknownArgv, Escalated: true},
		{Argv: safeArgv},
		{Argv: safeArgv, Escalated: true},
		{Argv: unknownArgv, Answer: protocol.Approved},
	}
	var all []cell
	for _, line := range strings.Split(strings.TrimSpace(commandMatrix), "\n") {
		f := strings.Fields(line)
		if len(f) != 7 {
			t.Fatalf("%d fields in %q", len(f), line)
		}
		for i, q := range requests {
			can, cannot, _ := strings.Cut(f[2+i], "/")
			for _, confinable := range []bool{true, false} {
				word := can
				if !confinable {
					word = cannot
				}
				want, ok := matrixWords[word]
				if !ok {
					t.Fatalf("%q in %q", word, line)
				}
				q.Cwd = "/w"
				r := Rules{Approval: protocol.ApprovalPolicy(f[0]), Mode: protocol.SandboxMode(f[1]), Confinable: confinable}
				all = append(all, cell{r, q, want})
			}
		}
	}
	return all
}

func TestCommandMatrix(t *testing.T) {
	all := matrix(t)
	if len(all) != 4*3*5*2 {
		t.Fatalf("%d cells", len(all))
	}
	for _, c := range all {
		name := fmt.Sprintf("%s × %s, confinable %v, %v escalated %v answer %q",
			c.rules.Approval, c.rules.Mode, c.rules.Confinable, c.req.Argv, c.req.Escalated, c.req.Answer)
		got := c.rules.Command(c.req)
		if got.Verdict != c.want {
			t.Errorf("%s: %v, want %v", name, got.Verdict, c.want)
		}
		checkForm(t, name, c.rules, got)
		safe := c.req.Argv[0] == "ls"
		if got.Harden != safe {
			t.Errorf("%s: Harden is %v", name, got.Harden)
		}
	}
}

// checkForm checks what holds for every ruling.
func checkForm(t *testing.T, name string, r Rules, got Ruling) {
	t.Helper()
	confined := got.Verdict == RunConfined || got.Verdict == RunConfinedAskOnDenial
	if confined != (got.Mode != "") || confined && got.Mode != r.Mode {
		t.Errorf("%s: %v is confined to %q", name, got.Verdict, got.Mode)
	}
	if (got.Verdict == Ask || got.Verdict == Refuse) && got.Text == "" {
		t.Errorf("%s: %v without words", name, got.Verdict)
	}
	if (got.Verdict == Ask || got.Verdict == Refuse) != (got.Reason != "") {
		t.Errorf("%s: verdict %v for the reason %q", name, got.Verdict, got.Reason)
	}
	if strings.Contains(got.Text, "{") {
		t.Errorf("%s: a hole in %q", name, got.Text)
	}
	unconfined := got.Verdict == RunUnconfined && r.Mode != protocol.SandboxFullAccess
	if unconfined && !r.Confinable && got.Harden && got.Text == "" {
		t.Errorf("%s: runs unconfined in silence", name)
	}
}

// Git runs what the configuration of a repository names, so that it is safe
// only where something confines it.
func TestGitIsSafeOnlyWhenConfined(t *testing.T) {
	for _, argv := range [][]string{
		{"git", "diff"},
		{"git", "-C", "elsewhere", "status"},
		{"/usr/bin/git", "log"},
		{"bash", "-lc", "cd elsewhere && git diff"},
		{"bash", "-c", "ls | git diff --no-index a b"},
	} {
		for _, mode := range []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite} {
			r := Rules{Approval: protocol.ApprovalUntrusted, Mode: mode, Confinable: true}
			if got := r.Command(CommandRequest{Argv: argv, Cwd: "/w"}); got.Verdict != RunConfinedAskOnDenial || !got.Harden {
				t.Errorf("%q, confined: %+v", argv, got)
			}
			r.Confinable = false
			if got := r.Command(CommandRequest{Argv: argv, Cwd: "/w"}); got.Verdict != Ask || got.Harden {
				t.Errorf("%q, on a machine that cannot confine: %+v", argv, got)
			}
			r.Approval = protocol.ApprovalNever
			if got := r.Command(CommandRequest{Argv: argv, Cwd: "/w"}); got.Verdict != Refuse {
				t.Errorf("%q, and nobody may be asked: %+v", argv, got)
			}
		}
		r := Rules{Approval: protocol.ApprovalUntrusted, Mode: protocol.SandboxFullAccess, Confinable: true}
		if got := r.Command(CommandRequest{Argv: argv, Cwd: "/w"}); got.Verdict != Ask {
			t.Errorf("%q, with full access: %+v", argv, got)
		}
	}
}

// A session grant is as good as a yes to the call, but only for the same
// arguments in the same directory.
func TestGrantedForTheSession(t *testing.T) {
	granted := Grants{}.With(unknownArgv, "/w")
	for _, c := range matrix(t) {
		if c.req.Answer != "" || c.req.Argv[0] == "ls" {
			continue
		}
		r := c.rules
		r.Grants = granted
		if got := r.Command(c.req); got.Verdict != RunUnconfined || got.Harden {
			t.Errorf("%+v %+v: %+v", c.rules, c.req, got)
		}
		for _, other := range []CommandRequest{
			{Argv: unknownArgv, Cwd: "/w/sub", Escalated: c.req.Escalated},
			{Argv: []string{"make", "install", "x"}, Cwd: "/w", Escalated: c.req.Escalated},
			{Argv: []string{"make"}, Cwd: "/w", Escalated: c.req.Escalated},
		} {
			if got := r.Command(other); got.Verdict != c.want {
				t.Errorf("%v %v with a grant for another: %v, want %v", r.Approval, other, got.Verdict, c.want)
			}
		}
	}
}

func TestNoIsNo(t *testing.T) {
	for _, c := range matrix(t) {
		for _, d := range []protocol.Decision{protocol.Denied, protocol.Abort, protocol.Cancelled, "perhaps"} {
			r, q := c.rules, c.req
			r.Grants = Grants{}.With(q.Argv, q.Cwd)
			q.Answer = d
			if got := r.Command(q); got.Verdict != Refuse || got.Text == "" {
				t.Errorf("%q to %+v: %+v", d, c.rules, got)
			}
		}
	}
}

// A yes to the question after a denial runs that call, and no later one.
func TestApprovingARetryGrantsNothing(t *testing.T) {
	r := Rules{Approval: protocol.ApprovalOnFailure, Mode: protocol.SandboxWorkspaceWrite, Confinable: true}
	q := CommandRequest{Argv: unknownArgv, Cwd: "/w"}
	if got := r.Command(q); got.Verdict != RunConfinedAskOnDenial {
		t.Fatalf("first: %v", got.Verdict)
	}
	if got := r.Denied(); got.Verdict != Ask {
		t.Fatalf("after the denial: %v", got.Verdict)
	}
	r.Grants = r.Grants.Answered(protocol.Approved, q.Argv, q.Cwd)
	retry := q
	retry.Answer = protocol.Approved
	if got := r.Command(retry); got.Verdict != RunUnconfined {
		t.Errorf("the retry: %v", got.Verdict)
	}
	if got := r.Command(q); got.Verdict != RunConfinedAskOnDenial {
		t.Errorf("the next call: %v", got.Verdict)
	}
	r.Grants = r.Grants.Answered(protocol.ApprovedForSession, q.Argv, q.Cwd)
	if got := r.Command(q); got.Verdict != RunUnconfined {
		t.Errorf("after approval for the session: %v", got.Verdict)
	}
}

// Denied asks where Command said that it would, and never elsewhere.
func TestDenied(t *testing.T) {
	for _, c := range matrix(t) {
		ruling := c.rules.Command(c.req)
		if ruling.Mode == "" {
			continue
		}
		got := c.rules.Denied()
		if (got.Verdict == Ask) != (ruling.Verdict == RunConfinedAskOnDenial) || got.Text == "" {
			t.Errorf("%s × %s: %v, then %+v", c.rules.Approval, c.rules.Mode, ruling.Verdict, got)
		}
		if got.Verdict != Ask && got.Verdict != Refuse {
			t.Errorf("%s × %s: %v after a denial", c.rules.Approval, c.rules.Mode, got.Verdict)
		}
		hint := strings.Contains(got.Text, "with_escalated_permissions")
		if offered := c.rules.Approval == protocol.ApprovalOnRequest; hint != offered { // a person would be asked
			t.Errorf("%s × %s: %q", c.rules.Approval, c.rules.Mode, got.Text)
		}
	}
}

// Nothing runs unconfined in silence; questions and refusals speak for themselves.
func TestRemarks(t *testing.T) {
	unable := Rules{Approval: protocol.ApprovalNever, Mode: protocol.SandboxReadOnly}
	if got := unable.Command(CommandRequest{Argv: []string{"ls"}}).Remarks(); len(got) != 1 || !strings.Contains(got[0], "cannot confine") {
		t.Errorf("a safe command that cannot be confined: %q", got)
	}
	for name, r := range map[string]Ruling{
		"refused":  unable.Command(CommandRequest{Argv: unknownArgv}),
		"asked":    Rules{Approval: protocol.ApprovalUntrusted}.Command(CommandRequest{Argv: unknownArgv}),
		"confined": Rules{Approval: protocol.ApprovalNever, Confinable: true}.Command(CommandRequest{Argv: unknownArgv}),
	} {
		if got := r.Remarks(); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Under never, an escalation that is not granted is mentioned.
func TestIgnoredEscalationIsMentioned(t *testing.T) {
	r := Rules{Approval: protocol.ApprovalNever, Mode: protocol.SandboxReadOnly, Confinable: true}
	if got := r.Command(CommandRequest{Argv: unknownArgv, Escalated: true}); got.Verdict != RunConfined || got.Text == "" {
		t.Errorf("escalated: %+v", got)
	}
	if got := r.Command(CommandRequest{Argv: unknownArgv}); got.Text != "" {
		t.Errorf("not escalated: %+v", got)
	}
}

func TestMissingAndUnknownSettings(t *testing.T) {
	q := CommandRequest{Argv: unknownArgv, Cwd: "/w"}
	for _, c := range []struct {
		rules Rules
		want  Ruling
	}{
		{Rules{Confinable: true}, Ruling{Verdict: RunConfined, Mode: protocol.SandboxReadOnly}},
		{Rules{Approval: "sometimes", Mode: "none", Confinable: true}, Ruling{Verdict: Ask}},
		{Rules{Approval: "Never", Mode: "DANGER-FULL-ACCESS"}, Ruling{Verdict: Ask}},
		{Rules{Approval: protocol.ApprovalNever, Mode: "none", Confinable: true}, Ruling{Verdict: RunConfined, Mode: protocol.SandboxReadOnly}},
		{Rules{}, Ruling{Verdict: Ask}},
	} {
		got := c.rules.Command(q)
		got.Text, got.Reason = "", ""
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.rules, diff)
		}
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for v := Refuse; v <= RunUnconfined; v++ {
		seen[v.String()] = true
	}
	if len(seen) != 5 || Verdict(9).String() != "verdict 9" || Verdict(-1).String() != "verdict -1" {
		t.Errorf("%v %v", seen, Verdict(9))
	}
	if (Ruling{}).Verdict != Refuse {
		t.Error("a forgotten ruling does not refuse")
	}
}

// For each policy and mode: inside the roots, outside, outside and approved.
const patchMatrix = `
untrusted  read-only          ask      ask    free
untrusted  workspace-write    ask      ask    free
untrusted  danger-full-access ask      ask    free
on-failure read-only          ask      ask    free
on-failure workspace-write    confined ask    free
on-failure danger-full-access free     free   free
on-request read-only          ask      ask    free
on-request workspace-write    confined ask    free
on-request danger-full-access free     free   free
never      read-only          refuse   refuse free
never      workspace-write    confined refuse free
never      danger-full-access free     free   free
`

func TestPatchMatrix(t *testing.T) {
	roots := Roots{Writable: []string{"/w"}}
	requests := []PatchRequest{
		{Paths: []string{"/w/a", "/w/b/c"}},
		{Paths: []string{"/w/a", "/etc/passwd"}}, // one of them is enough
		{Paths: []string{"/w/a", "/etc/passwd"}, Answer: protocol.Approved},
	}
	for _, line := range strings.Split(strings.TrimSpace(patchMatrix), "\n") {
		f := strings.Fields(line)
		r := Rules{Approval: protocol.ApprovalPolicy(f[0]), Mode: protocol.SandboxMode(f[1]), Roots: roots}
		for i, q := range requests {
			name := fmt.Sprintf("%s × %s, request %d", f[0], f[1], i)
			got := r.Patch(q)
			if want := matrixWords[f[2+i]]; got.Verdict != want {
				t.Errorf("%s: %v, want %v", name, got.Verdict, want)
			}
			checkForm(t, name, r, got)
			q.Answer = protocol.Denied
			if no := r.Patch(q); no.Verdict != Refuse {
				t.Errorf("%s, denied: %v", name, no.Verdict)
			}
		}
	}
}

func TestPatchReasonNamesThePath(t *testing.T) {
	r := Rules{Approval: protocol.ApprovalOnRequest, Mode: protocol.SandboxWorkspaceWrite, Roots: Roots{Writable: []string{"/w"}}}
	for _, policy := range []protocol.ApprovalPolicy{protocol.ApprovalOnRequest, protocol.ApprovalNever} {
		r.Approval = policy
		got := r.Patch(PatchRequest{Paths: []string{"/w/a", "/w/.git/config", "/etc/passwd"}})
		if !strings.Contains(got.Text, "/w/.git/config") || strings.Contains(got.Text, "passwd") || got.Reason != protocol.RefusedPath {
			t.Errorf("%s: %q", policy, got.Text)
		}
	}
	r.Mode = protocol.SandboxReadOnly
	if got := r.Patch(PatchRequest{Paths: []string{"/w/a"}}); !strings.Contains(got.Text, "/w/a") {
		t.Errorf("read-only: %q", got.Text)
	}
	if got := r.Patch(PatchRequest{}); got.Verdict != Refuse || !strings.Contains(got.Text, "unknown place") {
		t.Errorf("a patch without paths: %+v", got)
	}
}

// Where no approval may be requested, the model is shown that, and people what stands in the way: where it is shown to them, the rest is
// said already.
func TestWhyOfRefusals(t *testing.T) {
	r := Rules{Approval: protocol.ApprovalNever, Mode: protocol.SandboxReadOnly, Confinable: true}
	got := r.Patch(PatchRequest{Paths: []string{"/etc/x"}})
	const why = "the patch was not applied: nothing may be written to /etc/x"
	if got.Verdict != Refuse || got.Why != why || got.Text != why+noApproval {
		t.Errorf("got %+v", got)
	}
	for _, table := range [][]row{commandTable, patchTable, denialTable} {
		for _, row := range table {
			if row.Verdict == Refuse && row.policies == never && strings.Contains(row.text, "approval policy") {
				t.Errorf("%q names the policy, which find adds", row.text)
			}
		}
	}
}
