package prompt

import (
	"fmt"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// Environment returns the message that tells the model of its environment, as far
// as that differs from what it was given before; with zero old settings all of it.
// It is empty if nothing differs. What git says is only given together with
// something else: it changes all the time, and the model can ask.
func Environment(old, now p.Settings) string {
	first := old.Cwd == ""
	old, now = old.ForTurn(), now.ForTurn()
	var b strings.Builder
	line := func(name, was, is string) {
		if is != was && is != "" {
			fmt.Fprintf(&b, "\n  <%s>%s</%s>", name, is, name)
		}
	}
	line("cwd", old.Cwd, now.Cwd)
	line("approval_policy", string(old.Approval), string(now.Approval))
	line("sandbox_mode", string(old.Sandbox.Mode), string(now.Sandbox.Mode))
	line("network_access", network(old), network(now))
	line("writable_roots", roots(old), roots(now))
	line("shell", old.Environment.Shell, now.Environment.Shell)
	line("operating_system", old.Environment.OS, now.Environment.OS)
	line("current_date", old.Environment.Date, now.Environment.Date)
	line("time_zone", old.Environment.TimeZone, now.Environment.TimeZone)
	if b.Len() > 0 {
		line("git_repository", old.Environment.Git, now.Environment.Git)
	}
	if text := permissions(now); text != permissions(old) && text != "" {
		fmt.Fprintf(&b, "\n  <permissions>\n%s  </permissions>", text)
	}
	if b.Len() == 0 && !first {
		return ""
	}
	return "<environment_context>" + b.String() + "\n</environment_context>"
}

func network(s p.Settings) string {
	switch {
	case s.Sandbox.Mode == "":
		return ""
	case s.Sandbox.Mode == p.SandboxFullAccess || s.Sandbox.NetworkAccess:
		return "enabled"
	}
	return "restricted"
}

// roots lists where commands and patches may write, beside the working directory.
func roots(s p.Settings) string {
	if s.Sandbox.Mode != p.SandboxWorkspaceWrite {
		return ""
	}
	list := append([]string{s.Cwd}, s.Sandbox.WritableRoots...)
	if !s.Sandbox.ExcludeSlashTmp {
		list = append(list, "/tmp")
	}
	if !s.Sandbox.ExcludeTmpdirEnvVar {
		list = append(list, "$TMPDIR")
	}
	return strings.Join(list, ", ")
}

// What the sandbox modes and the approval policies mean to a model.
var (
	modes = map[p.SandboxMode]string{
		p.SandboxReadOnly: "Commands run in a sandbox: they can read files, but write none.",
		p.SandboxWorkspaceWrite: "Commands run in a sandbox: they can read files, and write only below the writable roots. " +
			"The .git directories there and the settings of agents are read-only.",
		p.SandboxFullAccess: "Commands are not confined: they can change everything that the user can. Be careful outside the working directory.",
	}
	policies = map[p.ApprovalPolicy]string{
		p.ApprovalUntrusted: "The user is asked before each command that is not known to only read, and before each change of a file. " +
			"Prefer commands that only read, and put what belongs together into one call.",
		p.ApprovalOnFailure: "If the sandbox makes a command fail, the user is asked whether to run it again without. You need not ask yourself.",
		p.ApprovalOnRequest: "If the sandbox keeps a command from doing what the task needs, call it again with with_escalated_permissions and a justification, and the user is asked. " +
			"Do that only then: not in advance, not for what works inside, and not again after a no.",
		p.ApprovalNever: "No approval can be requested. If something is not permitted, find another way, or finish the rest and say what could not be done.",
	}
)

// planMode describes plan mode for a model. What it cannot do is kept by the sandbox.
const planMode = "Plan mode is on: the user wants a plan before anything is changed, and no approval can permit more until it is accepted. " +
	"Read what you need, ask if something important is unclear, and end your turn with the whole plan: what will change in which files, in what order, " +
	"and how it will be tested. Do not try to make the changes; a message tells you when the plan is accepted."

// permissions says in words what the policies of the settings mean.
func permissions(s p.Settings) string {
	mode, policy := modes[s.Sandbox.Mode], policies[s.Approval]
	if mode == "" || policy == "" {
		return ""
	}
	var b strings.Builder
	say := func(text string) { b.WriteString("  " + text + "\n") }
	say(mode)
	if s.Sandbox.Mode != p.SandboxFullAccess {
		if !s.Sandbox.NetworkAccess {
			say("They have no network: downloads and package installations fail, and servers cannot listen.")
		}
		say("They see and signal only their own processes.")
	}
	if s.Sandbox.Mode == p.SandboxReadOnly && !s.Plan {
		if s.Approval == p.ApprovalNever {
			say("No tool can change files.")
		} else {
			say("The tools that change files ask the user first.")
		}
	}
	if s.Sandbox.Mode == p.SandboxFullAccess && s.Approval != p.ApprovalUntrusted && s.Approval != p.ApprovalNever {
		return b.String() // there is nothing to ask for
	}
	if s.Plan {
		say(planMode)
		return b.String()
	}
	say(policy)
	return b.String()
}
