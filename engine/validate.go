package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// A FieldError says which field of a Config, of settings or of an op is wrong.
type FieldError struct {
	Field   string // such as "Config.Model" or "Settings.Approval"
	Problem string // what is wrong with it, and what it may be
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ErrNoOp is the answer to a Submit without an op.
var ErrNoOp = errors.New("there is no op to submit")

// ValidSettings returns a *FieldError for the first setting that is wrong. Those that are
// not set are not wrong.
func ValidSettings(s p.Settings) error { return checkSettings("Settings", s) }

// ValidOp returns the op as a value: clients may submit values and pointers. An op that
// cannot be accepted in any state is an error. Engines call it themselves.
func ValidOp(op p.Op) (p.Op, error) {
	v := reflect.ValueOf(op)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		op, _ = v.Elem().Interface().(p.Op)
	} else if op == nil || v.Kind() == reflect.Pointer {
		return nil, ErrNoOp
	}
	if err := checkOp(op); err != nil {
		return nil, err
	}
	if _, err := json.Marshal(op); err != nil { // it could not be recorded
		return nil, fmt.Errorf("op %T cannot be encoded: %w", op, err)
	}
	return op, nil
}

func checkOp(op p.Op) error {
	switch op := op.(type) {
	case p.UserTurn:
		if !slices.Contains([]p.WhenBusy{"", p.Steer, p.Queue, p.Replace}, op.WhenBusy) {
			return &FieldError{"UserTurn.WhenBusy", fmt.Sprintf("%q is not steer, queue or replace", op.WhenBusy)}
		}
		if op.Overrides != nil {
			return checkSettings("UserTurn.Overrides", op.Overrides.Apply(p.Settings{}))
		}
	case p.Configure:
		return checkSettings("Configure.Overrides", op.Overrides.Apply(p.Settings{}))
	case p.TryNow:
		if op.Overrides != nil {
			return checkSettings("TryNow.Overrides", op.Overrides.Apply(p.Settings{}))
		}
	case p.ResolveReturned:
		if op.As != p.ResolvedTaken && op.As != p.ResolvedDropped {
			return &FieldError{"ResolveReturned.As", fmt.Sprintf("%q is not taken or dropped", op.As)}
		}
		if len(op.Inputs) == 0 {
			return &FieldError{"ResolveReturned.Inputs", "no returned message is named"}
		}
	case p.Interrupt:
		if !slices.Contains([]p.EndReason{"", p.Interrupted, p.Replaced, p.Failed}, op.Reason) {
			return &FieldError{"Interrupt.Reason", fmt.Sprintf("%q is not interrupted, replaced or failed", op.Reason)}
		}
	}
	return nil
}

// checkSettings names the first setting that is wrong. Those that are not set are
// not wrong.
func checkSettings(where string, s p.Settings) error {
	approvals := []p.ApprovalPolicy{"", p.ApprovalUntrusted, p.ApprovalOnFailure, p.ApprovalOnRequest, p.ApprovalNever}
	modes := []p.SandboxMode{"", p.SandboxReadOnly, p.SandboxWorkspaceWrite, p.SandboxFullAccess}
	var field, problem string
	switch {
	case s.Cwd != "" && !filepath.IsAbs(s.Cwd):
		field, problem = "Cwd", fmt.Sprintf("%q is not an absolute path", s.Cwd)
	case s.ContextWindow < 0:
		field, problem = "ContextWindow", fmt.Sprintf("%d is negative", s.ContextWindow)
	case !slices.Contains(approvals, s.Approval):
		field, problem = "Approval", fmt.Sprintf("%q is not untrusted, on-failure, on-request or never", s.Approval)
	case !slices.Contains(modes, s.Sandbox.Mode):
		field, problem = "Sandbox.Mode", fmt.Sprintf("%q is not read-only, workspace-write or danger-full-access", s.Sandbox.Mode)
	case len(s.OutputSchema) > 0 && !json.Valid(s.OutputSchema):
		field, problem = "OutputSchema", "it is not JSON"
	default:
		return nil
	}
	return &FieldError{where + "." + field, problem}
}
