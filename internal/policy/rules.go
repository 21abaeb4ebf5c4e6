package policy

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// A Verdict says what becomes of a call. The zero value refuses it.
type Verdict int

// The verdicts.
const (
	Refuse                 Verdict = iota // Text goes to the model
	Ask                                   // a person decides; Text is why
	RunConfined                           // a denial by the sandbox is an ordinary failure
	RunConfinedAskOnDenial                // a denial by the sandbox is a question: see Rules.Denied
	RunUnconfined
)

var verdictNames = [...]string{"refuse", "ask", "confined", "confined, ask on denial", "unconfined"}

func (v Verdict) String() string {
	if v < 0 || int(v) >= len(verdictNames) {
		return fmt.Sprintf("verdict %d", int(v))
	}
	return verdictNames[v]
}

// Rules are what is in force when a call is looked at. The zero value asks or
// refuses where it can.
type Rules struct {
	Approval   protocol.ApprovalPolicy // empty is on-request; an unknown one counts as untrusted
	Mode       protocol.SandboxMode    // empty or unknown is read-only
	Confinable bool                    // whether this machine can confine a command
	Grants     Grants                  // what was approved for the session
	Prefixes   []PrefixRule            // what was decided for good, by how commands begin
	Roots      Roots                   // where patches may write unasked

	// NoEscalation keeps what is approved inside the sandbox, if the mode has one.
	NoEscalation bool
}

// A CommandRequest is a command that the model wants to run.
type CommandRequest struct {
	Argv      []string
	Cwd       string            // absolute
	Escalated bool              // the model asks to run it outside the sandbox
	Answer    protocol.Decision // what a person said to this very call; empty if no client was asked
}

// A PatchRequest is a patch that the model wants to apply.
type PatchRequest struct {
	Paths  []string          // every path it changes, targets of moves included; absolute and real
	Answer protocol.Decision // as for a command
}

// A Ruling is what the rules say about one call.
type Ruling struct {
	Verdict Verdict
	Mode    protocol.SandboxMode // what a confined run is confined to; empty for the other verdicts
	Harden  bool                 // run it with Harden(environ): no approval was needed, because it is safe

	// Reason is, for Ask and Refuse, what stands in the way.
	Reason protocol.RefusalReason

	// Text is, for Ask, why a person is asked; for Refuse, the answer to the
	// model; and for a run a remark for people, mostly empty.
	Text string

	// Why is, for Refuse, what people are shown where it is said already that no approval could be requested. Empty
	// if that is Text.
	Why string
}

// Remarks is what people should know of a run, such as that this machine cannot
// confine it.
func (r Ruling) Remarks() []string {
	if r.Text == "" || r.Verdict == Refuse || r.Verdict == Ask {
		return nil
	}
	return []string{r.Text}
}

// Sets of policies, modes and facts, so that a row of a table is one line.
type (
	policies uint8
	modes    uint8
	facts    uint8
)

const (
	untrusted policies = 1 << iota
	onFailure
	onRequest
	never
	anyPolicy = untrusted | onFailure | onRequest | never
)

const (
	readOnly modes = 1 << iota
	workspaceWrite
	fullAccess
	confining = readOnly | workspaceWrite
	anyMode   = confining | fullAccess
)

const (
	rejected     facts = 1 << iota // a person has said no to this call
	granted                        // a person has said yes, to this call or for the session
	escalated                      // the model asks to get out of the sandbox
	safe                           // the command is known to be safe
	unconfinable                   // there is no sandbox on this machine
	inside                         // the patch stays inside the writable roots
	mustAsk                        // a rule of the user says that a client is asked
	always       facts = 0
)

// A row holds if the policy and the mode are among those named and all the facts
// are given.
type row struct {
	policies
	modes
	facts
	Verdict
	text string
}

// noApproval is what a refusal adds for the model where an approval would have been requested under another policy.
const noApproval = ", and no approval may be requested (approval policy never)"

// commandTable decides about commands: the first row that holds.
var commandTable = []row{
	{anyPolicy, anyMode, rejected, Refuse, "the user did not allow this command"},
	{anyPolicy, anyMode, granted, RunUnconfined, ""},
	{never, anyMode, mustAsk, Refuse, "the command was not run: a rule of the user says that it needs approval"},
	{anyPolicy, anyMode, mustAsk, Ask, "a rule of the user says that this command needs approval; if approved, it runs outside the sandbox"},

	{anyPolicy, fullAccess, safe, RunUnconfined, ""},
	{untrusted, fullAccess, always, Ask, "the command is not known to be safe"},
	{anyPolicy, fullAccess, always, RunUnconfined, ""},

	// A safe command runs unasked, confined if the machine can: see the package comment.
	{anyPolicy, confining, safe | unconfinable, RunUnconfined, "this machine cannot confine commands; this one is known to be safe"},
	{untrusted | onRequest, confining, escalated, Ask, "the model asks to run the command outside the sandbox"},
	{untrusted, confining, safe, RunConfinedAskOnDenial, ""},
	{untrusted, confining, always, Ask, "the command is not known to be safe; if approved, it runs outside the sandbox"},

	{never, confining, unconfinable, Refuse, "the command was not run: this machine cannot confine commands, and the command is not known to be safe"},
	{anyPolicy, confining, unconfinable, Ask, "this machine cannot confine the command"},

	{onFailure, confining, always, RunConfinedAskOnDenial, ""},
	{never, confining, escalated, RunConfined, "the command ran inside the sandbox although it was to run outside: the approval policy is never"},
	{onRequest | never, confining, always, RunConfined, ""},
}

// denialTable decides what follows when the sandbox has denied a confined
// command something. A yes to its question is a yes to that one retry.
var denialTable = []row{
	{untrusted | onFailure, anyMode, always, Ask, "the sandbox denied the command something; run it again outside the sandbox?"},
	{onRequest, confining, always, Refuse, "the sandbox denied the command something; if it has to run outside the sandbox, call again with with_escalated_permissions and a justification"},
	{anyPolicy, anyMode, always, Refuse, "the sandbox denied the command something, and it cannot be run outside"},
}

// patchTable decides about patches: the first row that holds. A patch is applied
// by fermata itself, to paths that are known before; so none is tried that is
// bound to be denied, and on-failure asks at once.
var patchTable = []row{
	{anyPolicy, anyMode, rejected, Refuse, "the user did not allow this patch"},
	{anyPolicy, anyMode, granted, RunUnconfined, ""},
	{untrusted, anyMode, always, Ask, "every patch needs approval"},
	{anyPolicy, fullAccess, always, RunUnconfined, ""},
	{anyPolicy, workspaceWrite, inside, RunConfined, ""},
	{never, confining, always, Refuse, "the patch was not applied: nothing may be written to {path}"},
	{anyPolicy, confining, always, Ask, "nothing may be written to {path} unasked"},
}

// Command decides whether a command may run.
func (r Rules) Command(q CommandRequest) Ruling {
	f := decisionFacts(q.Answer)
	if r.Grants.Has(q.Argv, q.Cwd) {
		f |= granted
	}
	if rule, ok := decidePrefix(r.Prefixes, q.Argv); ok {
		switch rule.Decision {
		case PrefixForbid:
			return Ruling{Reason: protocol.RefusedByRule, Text: withWhy("the command was not run: a rule of the user forbids it", rule.Why)}
		case PrefixPrompt:
			f |= mustAsk
		case PrefixAllow:
			f |= granted
		}
	}
	if q.Escalated {
		f |= escalated
	}
	if !r.Confinable {
		f |= unconfinable
	}
	if confined := r.Confinable && r.mode() != fullAccess; confined && Safe(q.Argv) || SafeUnconfined(q.Argv) {
		f |= safe
	}
	out := r.find(commandTable, f)
	out.Harden = f&safe != 0 && f&granted == 0
	return r.keepInside(out, f)
}

func withWhy(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}

// keepInside changes a ruling that would let something leave the sandbox, or ask
// whether it may, if that is not allowed here.
func (r Rules) keepInside(out Ruling, f facts) Ruling {
	leaves := out.Verdict == RunUnconfined && !(out.Harden && f&unconfinable != 0)
	if !r.NoEscalation || r.mode() == fullAccess || !leaves && out.Verdict != Ask && out.Verdict != RunConfinedAskOnDenial {
		return out
	}
	if f&unconfinable != 0 {
		return Ruling{Reason: protocol.RefusedBySandbox, Text: "the command was not run: this machine cannot confine commands, and nothing may run outside the sandbox here"}
	}
	if out.Verdict == Ask && f&escalated == 0 { // whether it may run at all
		out.Text = "the command is not known to be safe"
		return out
	}
	inside := r.find([]row{{anyPolicy, anyMode, always, RunConfined, ""}}, f)
	inside.Harden = out.Harden
	if f&escalated != 0 {
		inside.Text = "the command ran inside the sandbox: nothing may run outside it here"
	}
	return inside
}

// Denied decides what follows when the sandbox has denied something to a command
// that ran confined: a question, or words for the model. It asks exactly where
// Command said RunConfinedAskOnDenial.
func (r Rules) Denied() Ruling {
	if r.NoEscalation {
		return Ruling{Reason: protocol.RefusedBySandbox, Text: "the sandbox denied the command something, and it cannot be run outside"}
	}
	out := r.find(denialTable, always)
	out.Reason = protocol.RefusedBySandbox
	return out
}

// Patch decides whether a patch may be applied. A confined patch may write
// inside the roots only, an unconfined one anywhere.
func (r Rules) Patch(q PatchRequest) Ruling {
	f := decisionFacts(q.Answer)
	outside, found := r.outside(q.Paths)
	if !found {
		f |= inside
	}
	out := r.find(patchTable, f)
	if r.NoEscalation && r.mode() != fullAccess && f&rejected == 0 {
		switch {
		case found: // a yes would let it leave the sandbox
			return Ruling{Reason: protocol.RefusedPath, Text: "the patch was not applied: nothing may be written to " + outside + " here"}
		case out.Verdict == RunUnconfined:
			return r.find([]row{{anyPolicy, anyMode, always, RunConfined, ""}}, f)
		}
	}
	if found && (out.Verdict == Refuse || r.policy() != untrusted && out.Verdict == Ask) {
		out.Reason = protocol.RefusedPath
	}
	out.Text = strings.ReplaceAll(out.Text, "{path}", outside)
	out.Why = strings.ReplaceAll(out.Why, "{path}", outside)
	return out
}

// outside finds the first path that may not be written unasked. A patch that
// names no path at all was not understood, and is not trusted.
func (r Rules) outside(paths []string) (string, bool) {
	if len(paths) == 0 {
		return "an unknown place", true
	}
	for _, p := range paths {
		if r.mode() != workspaceWrite || !r.Roots.Hold(p) {
			return p, true
		}
	}
	return "", false
}

func (r Rules) find(table []row, f facts) Ruling {
	policy, mode := r.policy(), r.mode()
	for _, row := range table {
		if row.policies&policy == 0 || row.modes&mode == 0 || row.facts&^f != 0 {
			continue
		}
		out := Ruling{Verdict: row.Verdict, Text: row.text}
		if row.Verdict == Refuse || row.Verdict == Ask {
			out.Reason = protocol.RefusedUnasked
		}
		if row.Verdict == Refuse && row.policies == never {
			out.Text, out.Why = row.text+noApproval, row.text
		}
		if row.Verdict == RunConfined || row.Verdict == RunConfinedAskOnDenial {
			out.Mode = protocol.SandboxReadOnly
			if mode == workspaceWrite {
				out.Mode = protocol.SandboxWorkspaceWrite
			}
		}
		return out
	}
	return Ruling{Text: "no rule covers this call"} // a test shows that the tables are complete
}

func (r Rules) policy() policies {
	switch r.Approval {
	case protocol.ApprovalOnRequest, "":
		return onRequest
	case protocol.ApprovalOnFailure:
		return onFailure
	case protocol.ApprovalNever:
		return never
	}
	return untrusted
}

func (r Rules) mode() modes {
	switch r.Mode {
	case protocol.SandboxFullAccess:
		return fullAccess
	case protocol.SandboxWorkspaceWrite:
		return workspaceWrite
	}
	return readOnly
}

func decisionFacts(d protocol.Decision) facts {
	switch d {
	case "":
		return 0
	case protocol.Approved, protocol.ApprovedForSession:
		return granted
	}
	return rejected
}
