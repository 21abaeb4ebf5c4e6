package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// Limits are what an operator allows: settings that no client, and no
// conversation that was begun elsewhere, may exceed. An empty list allows
// everything. The zero value is no limit.
type Limits struct {
	Sandbox   []protocol.SandboxMode
	Approval  []protocol.ApprovalPolicy
	Providers []string // ids; those that a client defines itself are none of them
	Keys      []string // variables that a provider which a client defines may read keys from
	Dirs      []string // absolute and real; a conversation works in or below one of them

	// Workspace, if set, is the most that workspace-write may mean: its network
	// access and its writable roots.
	Workspace *protocol.SandboxPolicy

	// NoEscalation means that an approval lets a command or a patch go ahead
	// inside the sandbox only.
	NoEscalation bool

	// From says who set the limits, for messages.
	From string
}

// A LimitError means that something is not allowed here.
type LimitError struct {
	What    string   // such as "sandbox_mode"
	Value   string   // what was asked for
	Allowed []string // what could be
	From    string   // who says so
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("%s %s is not allowed here", e.What, e.Value)
	if len(e.Allowed) > 0 {
		text += ": allowed is " + strings.Join(e.Allowed, ", ")
	}
	if e.From != "" {
		text += " (" + e.From + ")"
	}
	return text
}

var (
	// Each allows commands more than the one before.
	modesInOrder = []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxFullAccess}

	// Each asks less than the one before. On-failure and on-request both ask before
	// anything leaves the sandbox: whoever allows one allows the other.
	approvalsInOrder = []protocol.ApprovalPolicy{
		protocol.ApprovalUntrusted, protocol.ApprovalOnFailure, protocol.ApprovalOnRequest, protocol.ApprovalNever,
	}
)

// SandboxUpTo returns a mode and those that are stricter; false if there is no
// such mode.
func SandboxUpTo(most protocol.SandboxMode) ([]protocol.SandboxMode, bool) {
	i := slices.Index(modesInOrder, most)
	return modesInOrder[:i+1], i >= 0
}

// ApprovalFrom returns a policy and those that ask as much or more; false if
// there is no such policy.
func ApprovalFrom(least protocol.ApprovalPolicy) ([]protocol.ApprovalPolicy, bool) {
	i := slices.Index(approvalsInOrder, least)
	if least == protocol.ApprovalOnFailure {
		i++
	}
	return approvalsInOrder[:i+1], i >= 0
}

// And returns limits that allow what both allow. That may be nothing at all.
func (l Limits) And(m Limits) Limits {
	out := Limits{
		Sandbox: both(l.Sandbox, m.Sandbox), Approval: both(l.Approval, m.Approval), Providers: both(l.Providers, m.Providers),
		Keys: both(l.Keys, m.Keys), Dirs: bothDirs(l.Dirs, m.Dirs), NoEscalation: l.NoEscalation || m.NoEscalation, Workspace: l.Workspace,
	}
	if out.Workspace == nil {
		out.Workspace = m.Workspace
	}
	out.From = strings.Join(slices.DeleteFunc([]string{l.From, m.From}, func(s string) bool { return s == "" }), "; ")
	return out
}

// nothing is in a list that allows nothing: an empty one would allow all.
const nothing = "\x00nothing"

func both[T ~string](a, b []T) []T {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b)
	}
	out := slices.DeleteFunc(slices.Clone(a), func(x T) bool { return !slices.Contains(b, x) })
	if len(out) == 0 {
		return []T{nothing}
	}
	return out
}

func bothDirs(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b)
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			if _, ok := below(x, y); ok {
				out = append(out, y)
			} else if _, ok := below(y, x); ok {
				out = append(out, x)
			}
		}
	}
	if len(out) == 0 {
		return []string{nothing}
	}
	return out
}

// Check reports what about some settings is not allowed, as a *LimitError. The
// directories in them must be real.
func (l Limits) Check(s protocol.Settings) error {
	if err := l.CheckDir(s.Cwd); err != nil {
		return err
	}
	if err := l.CheckSandbox(s.Sandbox); err != nil {
		return err
	}
	if err := l.CheckApproval(s.Approval); err != nil {
		return err
	}
	return l.CheckProvider(s.Provider)
}

// CheckSandbox is Check for a sandbox alone. An empty or unknown mode is read-only.
func (l Limits) CheckSandbox(p protocol.SandboxPolicy) error {
	mode := p.Mode
	if mode != protocol.SandboxWorkspaceWrite && mode != protocol.SandboxFullAccess {
		mode = protocol.SandboxReadOnly
	}
	if err := l.check("sandbox_mode", string(mode), texts(l.Sandbox)); err != nil {
		return err
	}
	if mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	if l.Workspace != nil && p.NetworkAccess && !l.Workspace.NetworkAccess {
		return &LimitError{What: "network_access", Value: "true", From: l.From}
	}
	for _, root := range p.WritableRoots {
		if l.Workspace != nil && !slices.Contains(l.Workspace.WritableRoots, root) {
			return &LimitError{What: "writable root", Value: root, Allowed: l.Workspace.WritableRoots, From: l.From}
		}
		if err := l.CheckDir(root); err != nil {
			return err
		}
	}
	return nil
}

// CheckApproval is Check for an approval policy alone. An empty one is on-request.
func (l Limits) CheckApproval(p protocol.ApprovalPolicy) error {
	if p == "" {
		p = protocol.ApprovalOnRequest
	}
	return l.check("approval_policy", string(p), texts(l.Approval))
}

// CheckProvider is Check for a provider alone. What follows a "#" says that a
// client defined it.
func (l Limits) CheckProvider(id string) error { return l.check("model provider", id, l.Providers) }

// CheckKeys reports whether a provider that a client defines may read variables.
func (l Limits) CheckKeys(names []string) error {
	for _, name := range names {
		if err := l.check("key variable", name, l.Keys); err != nil {
			return err
		}
	}
	return nil
}

// CheckDir reports whether work may be done in a directory.
func (l Limits) CheckDir(dir string) error {
	if len(l.Dirs) == 0 {
		return nil
	}
	for _, allowed := range l.Dirs {
		if _, ok := below(allowed, filepath.Clean(dir)); ok {
			return nil
		}
	}
	return &LimitError{What: "directory", Value: dir, Allowed: known(l.Dirs), From: l.From}
}

func (l Limits) check(what, value string, allowed []string) error {
	if len(allowed) == 0 || slices.Contains(allowed, value) {
		return nil
	}
	return &LimitError{What: what, Value: value, Allowed: known(allowed), From: l.From}
}

func known(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == nothing })
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return out
}

// Clamp returns settings that the user did not ask for in so many words, made as strict
// as the limits want them: the sandbox and the approval policy. What else is not
// allowed, Check reports. It also returns what it changed, for people.
func (l Limits) Clamp(s protocol.Settings) (protocol.Settings, []string) {
	var notes []string
	if err := l.CheckApproval(s.Approval); err != nil && len(known(texts(l.Approval))) > 0 {
		s.Approval = l.nearestApproval()
		notes = append(notes, fmt.Sprintf("%v; %s is used", err, s.Approval))
	}
	if err := l.CheckSandbox(s.Sandbox); err != nil && len(known(texts(l.Sandbox))) > 0 {
		s.Sandbox = l.clampSandbox(s.Sandbox)
		notes = append(notes, fmt.Sprintf("%v; %s is used", err, s.Sandbox.Mode))
	}
	return s, notes
}

// nearestApproval is the allowed policy that asks least.
func (l Limits) nearestApproval() protocol.ApprovalPolicy {
	for _, p := range slices.Backward(approvalsInOrder) {
		if slices.Contains(l.Approval, p) {
			return p
		}
	}
	return protocol.ApprovalUntrusted
}

func (l Limits) clampSandbox(p protocol.SandboxPolicy) protocol.SandboxPolicy {
	if l.check("", string(p.Mode), texts(l.Sandbox)) != nil {
		was := slices.Index(modesInOrder, p.Mode)
		p = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
		for _, mode := range modesInOrder[:max(was, 0)] {
			if slices.Contains(l.Sandbox, mode) {
				p.Mode = mode
			}
		}
	}
	if p.Mode == protocol.SandboxWorkspaceWrite {
		p.NetworkAccess = p.NetworkAccess && (l.Workspace == nil || l.Workspace.NetworkAccess)
		p.WritableRoots = slices.DeleteFunc(slices.Clone(p.WritableRoots), func(root string) bool {
			return l.CheckDir(root) != nil || l.Workspace != nil && !slices.Contains(l.Workspace.WritableRoots, root)
		})
	}
	return p
}
