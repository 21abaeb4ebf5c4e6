package tool

import (
	"context"
	"strings"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/protocol"
)

// A launch is a command that policy lets run.
type launch struct {
	spec   proc.Spec
	rules  policy.Rules
	ruling policy.Ruling
	box    *sandbox.Confinement // nil: not confined
	desk   *patchDesk           // nil: it cannot apply patches
	plan   bool                 // the turn is in plan mode
}

// clear asks policy about a command and puts the sandbox around it. If it must
// not run, or not yet, or is a patch, the second result is the call's.
func (s *Shell) clear(ctx context.Context, call Call, spec proc.Spec, e escalation) (launch, *Result) {
	if found, ok := syntax.Extract(spec.Argv); ok && s.Patch != nil {
		res := s.Patch.apply(ctx, call, found.Patch, within(spec.Dir, found.Dir))
		return launch{}, &res
	}
	l := launch{spec: spec, rules: s.rules(call), plan: call.Settings.Plan}
	if s.Prefixes != nil {
		l.rules.Prefixes = s.Prefixes(spec.Dir)
	}
	l.ruling = l.rules.Command(request(call, spec, e))
	var instead Result
	switch l.ruling.Verdict {
	case policy.Refuse:
		instead = refusalBy(call, l.ruling)
		return l, &instead
	case policy.Ask:
		instead = ask(spec, l.ruling.Text, e.justification)
		instead.Ask.RefusedFor = l.ruling.Reason
		return l, &instead
	}
	if l.ruling.Harden {
		l.spec.Env = policy.Harden(l.spec.Env)
	}
	box, err := s.confine(&l.spec, call, l.ruling)
	if err != nil {
		instead = failure("the command was not run: " + err.Error())
		return l, &instead
	}
	l.box = box
	warn(ctx, call, append(box.Notes(), l.ruling.Remarks()...))
	if !l.ruling.Harden && l.ruling.Mode != protocol.SandboxReadOnly { // it may write
		s.Changes.before(ctx, call)
	}
	s.openDesk(ctx, call, &l)
	return l, nil
}

// request is what policy is asked about a command.
func request(call Call, spec proc.Spec, e escalation) policy.CommandRequest {
	return policy.CommandRequest{Argv: spec.Argv, Cwd: spec.Dir, Escalated: e.wanted, Answer: call.Grant}
}

// explainDenial returns what follows if the sandbox kept the command from working: a
// question, if policy says to ask then, or a hint for the model.
func (l launch) explainDenial(res proc.Result, c protocol.CommandResult) (question *Result, hint string) {
	if l.box == nil || res.Stopped {
		return nil, ""
	}
	what, denied := l.box.Denied(sandbox.Attempt{Dir: l.spec.Dir, Result: res, Output: c.Output})
	if refusal := l.desk.refusal(); refusal != "" {
		what, denied = refusal, true
	}
	if !denied {
		return nil, ""
	}
	hint = l.rules.Denied().Text + ": " + what
	if l.plan {
		hint = planMode + "; the sandbox denied the command something: " + what
	}
	if l.ruling.Verdict != policy.RunConfinedAskOnDenial {
		return nil, hint
	}
	q := ask(l.spec, hint, "")
	q.Ask.RefusedFor = protocol.RefusedBySandbox
	q.Ask.Tried = &c // what it did is not lost if the answer is no
	return &q, ""
}

// refusal notes why the sandbox kept the command from working, if no approval could have allowed it.
func (l launch) noteRefusal(out *protocol.ToolOutput, hint string) {
	if hint == "" || l.rules.Approval != protocol.ApprovalNever && !l.rules.NoEscalation {
		return
	}
	out.Refused, out.RefusedFor = hint, protocol.RefusedBySandbox
	if l.plan {
		out.RefusedFor = protocol.RefusedByPlanMode
	}
}

// warnAppeared warns of protected paths that a command has made, which cannot be
// prevented.
func warnAppeared(ctx context.Context, call Call, box *sandbox.Confinement) {
	for _, path := range box.Appeared() {
		warn(ctx, call, []string{"the command created " + path + ", which is protected from now on; check it before you trust it"})
	}
}

// warnLeft warns of processes that could not be ended.
func warnLeft(ctx context.Context, call Call, res proc.Result) {
	if words := left(res); words != "" {
		warn(ctx, call, []string{"the command left processes running: " + strings.TrimSpace(words)})
	}
}

// warn shows notes to people, each once in a conversation.
func warn(ctx context.Context, call Call, notes []string) {
	for _, text := range notes {
		if call.Warned[text] {
			continue
		}
		note := &protocol.Notice{Text: text, Warn: true}
		if w, ok := call.Host.(Warner); ok { // else a call that runs beside this one may have noted it meanwhile
			_ = w.Warn(ctx, note) // a stop or a full disk is reported elsewhere
			continue
		}
		_ = call.Host.Record(ctx, note)
	}
}

// rules are what is in force for a call.
func (s *Shell) rules(call Call) policy.Rules {
	return policy.Rules{
		Approval: call.Settings.Approval, Mode: call.Settings.Sandbox.Mode,
		Confinable: sandbox.Probe().Missing() == "", Grants: call.Grants, NoEscalation: s.NoEscalation || call.Settings.Plan,
	}
}

// ask asks a person before the command runs.
func ask(spec proc.Spec, why, justification string) Result {
	if justification != "" {
		why = justification + " (" + why + ")"
	}
	return Result{Ask: &protocol.ApprovalRequested{
		Kind: protocol.ApproveCommand, Command: spec.Argv, Cwd: spec.Dir, Reason: why,
	}}
}

// confine puts the sandbox that the ruling asks for around the command.
func (s *Shell) confine(spec *proc.Spec, call Call, r policy.Ruling) (*sandbox.Confinement, error) {
	if r.Verdict == policy.RunUnconfined {
		return nil, nil
	}
	p := call.Settings.Sandbox
	p.Mode = r.Mode
	box, err := sandbox.New(p, sandbox.Place{
		Cwd: call.Settings.Cwd, Home: s.Home, OtherHomes: s.OtherHomes, Guarded: s.Guarded, Secrets: s.Secrets, Env: spec.Env, PIDNamespace: s.PIDNamespace,
	})
	if err != nil {
		return nil, err
	}
	if !p.NetworkAccess {
		spec.Env = append(spec.Env, "CODEX_SANDBOX_NETWORK_DISABLED=1")
	}
	return box, box.Set(spec)
}
