package appserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/appserver/items"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// modes are the names that clients have for sandbox modes.
var modes = map[string]p.SandboxMode{
	"dangerFullAccess": p.SandboxFullAccess, "readOnly": p.SandboxReadOnly, "workspaceWrite": p.SandboxWorkspaceWrite,
	":danger-full-access": p.SandboxFullAccess, ":read-only": p.SandboxReadOnly, ":workspace": p.SandboxWorkspaceWrite,
}

// request is what a client asks for, in the words of the application.
func (s *Server) request(o wire.Overrides) (app.SettingsRequest, error) {
	req := app.SettingsRequest{
		Model: o.Model, Cwd: s.absolute(o.Cwd), Sandbox: o.Sandbox, BaseInstructions: o.BaseInstr, Config: map[string]any{},
	}
	maps.Copy(req.Config, o.Config)
	for key, value := range map[string]string{
		"model_provider": o.ModelProvider, "developer_instructions": o.DeveloperInstr,
		"model_reasoning_effort": o.Effort, "model_reasoning_summary": o.Summary,
	} {
		if value != "" {
			req.Config[key] = value
		}
	}
	if err := approvalPolicy(o.ApprovalPolicy, &req); err != nil {
		return req, err
	}
	if o.Permissions != "" {
		mode, ok := modes[o.Permissions]
		if !ok {
			return req, badParams("permissions: %q is none of :read-only, :workspace, :danger-full-access", o.Permissions)
		}
		req.Sandbox = string(mode)
	}
	if err := sandboxPolicy(o.SandboxPolicy, &req); err != nil {
		return req, err
	}
	if len(req.Config) == 0 {
		req.Config = nil
	}
	return req, nil
}

func approvalPolicy(raw json.RawMessage, req *app.SettingsRequest) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, &req.ApprovalPolicy) != nil {
		return badParams("approvalPolicy: only untrusted, on-request and never are supported")
	}
	switch req.ApprovalPolicy {
	case "untrusted", "on-request", "on-failure", "never", "":
		return nil
	}
	return badParams("approvalPolicy: %q is none of untrusted, on-request, never", req.ApprovalPolicy)
}

func sandboxPolicy(pol *wire.SandboxPolicy, req *app.SettingsRequest) error {
	if pol == nil {
		return nil
	}
	mode, ok := modes[pol.Type]
	if !ok {
		return badParams("sandboxPolicy: the type %q is not supported", pol.Type)
	}
	req.Sandbox = string(mode)
	if mode != p.SandboxWorkspaceWrite {
		return nil
	}
	set := func(key string, value any) { req.Config["sandbox_workspace_write."+key] = value }
	if pol.WritableRoots != nil {
		roots := []any{}
		for _, r := range *pol.WritableRoots {
			roots = append(roots, r)
		}
		set("writable_roots", roots)
	}
	if network, ok := pol.NetworkAccess.(bool); ok {
		set("network_access", network)
	}
	if pol.ExcludeTmpdirEnvVar != nil {
		set("exclude_tmpdir_env_var", *pol.ExcludeTmpdirEnvVar)
	}
	if pol.ExcludeSlashTmp != nil {
		set("exclude_slash_tmp", *pol.ExcludeSlashTmp)
	}
	return nil
}

// asSandbox is a sandbox policy of a client's.
func asSandbox(pol *wire.SandboxPolicy) (*p.SandboxPolicy, error) {
	if pol == nil {
		return nil, nil
	}
	mode, ok := modes[pol.Type]
	if !ok {
		return nil, badParams("sandboxPolicy: the type %q is not supported", pol.Type)
	}
	out := &p.SandboxPolicy{Mode: mode}
	if mode == p.SandboxWorkspaceWrite {
		out.NetworkAccess, _ = pol.NetworkAccess.(bool)
		if pol.WritableRoots != nil {
			out.WritableRoots = *pol.WritableRoots
		}
		out.ExcludeTmpdirEnvVar = pol.ExcludeTmpdirEnvVar != nil && *pol.ExcludeTmpdirEnvVar
		out.ExcludeSlashTmp = pol.ExcludeSlashTmp != nil && *pol.ExcludeSlashTmp
	}
	return out, nil
}

// unchanged takes out of a request what is in force already: clients repeat their settings with each turn.
func unchanged(o wire.Overrides, now p.Settings) wire.Overrides {
	clear := func(value *string, is string) {
		if *value == is {
			*value = ""
		}
	}
	clear(&o.Model, now.Model)
	clear(&o.ModelProvider, now.Provider)
	clear(&o.Cwd, now.Cwd)
	clear(&o.Effort, now.Effort)
	clear(&o.Summary, now.Summary)
	clear(&o.Sandbox, string(now.Sandbox.Mode))
	if modes[o.Permissions] == now.Sandbox.Mode {
		o.Permissions = ""
	}
	var policy string
	if json.Unmarshal(o.ApprovalPolicy, &policy) == nil && (policy == string(now.Approval) || policy == items.Approval(now.Approval)) {
		o.ApprovalPolicy = nil
	}
	if pol, err := asSandbox(o.SandboxPolicy); err == nil && pol != nil {
		have := now.Sandbox
		have.WritableRoots = append([]string{}, have.WritableRoots...)
		pol.WritableRoots = append([]string{}, pol.WritableRoots...)
		if reflect.DeepEqual(*pol, have) {
			o.SandboxPolicy = nil
		}
	}
	return o
}

// planned takes the collaboration mode out of a request. It returns whether that is plan mode, nil if the request does not say.
func planned(o wire.Overrides) (wire.Overrides, *bool, error) {
	mode := o.Mode
	if mode == nil {
		return o, nil, nil
	}
	if mode.Mode != "plan" && mode.Mode != "default" {
		return o, nil, badParams("collaborationMode: the mode %q is neither plan nor default", mode.Mode)
	}
	o.Mode, o.Model = nil, cmp.Or(mode.Settings.Model, o.Model)
	if e := mode.Settings.Effort; e != nil {
		o.Effort = *e
	}
	return o, new(mode.Mode == "plan"), nil
}

// change is what a client's request changes about a conversation; nil if nothing.
func (s *Server) change(now p.Settings, o wire.Overrides) (*p.Overrides, []string, error) {
	o, plan, err := planned(o)
	if err != nil {
		return nil, nil, err
	}
	o = unchanged(o, now)
	if string(o.ApprovalPolicy) == "null" {
		o.ApprovalPolicy = nil
	}
	var over p.Overrides
	var remarks []string
	if !reflect.DeepEqual(o, wire.Overrides{}) {
		req, err := s.request(o)
		if err != nil {
			return nil, nil, err
		}
		if over, remarks, err = s.o.Change(now, req); err != nil {
			return nil, nil, refuse("%v", err)
		}
	}
	if plan != nil && *plan != now.Plan {
		over.Plan = plan
	}
	if reflect.DeepEqual(over, p.Overrides{}) {
		return nil, remarks, nil
	}
	return &over, remarks, nil
}
