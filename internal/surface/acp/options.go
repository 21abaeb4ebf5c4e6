package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// A mode is a choice of approvals and sandbox that go together, or plan mode.
type mode struct {
	wire.Mode
	approval p.ApprovalPolicy
	sandbox  p.SandboxMode
	plan     bool
}

// modes are those that people choose from.
var modes = []mode{
	{wire.Mode{ID: "ask", Name: "Ask", Description: "Reads files; asks before it changes any, and before commands that are not known to be safe"}, p.ApprovalUntrusted, p.SandboxReadOnly, false},
	{wire.Mode{ID: "auto", Name: "Auto", Description: "Changes files in the directory and runs commands in the sandbox; asks before anything else"}, p.ApprovalOnRequest, p.SandboxWorkspaceWrite, false},
	{wire.Mode{ID: "plan", Name: "Plan", Description: "Looks and plans; nothing is changed until another mode is chosen"}, "", "", true},
	{wire.Mode{ID: "read-only", Name: "Read only", Description: "Reads files and runs commands in a read-only sandbox; asks before anything else"}, p.ApprovalOnRequest, p.SandboxReadOnly, false},
}

// configuredMode is the id of the mode for settings that are none of the others.
const configuredMode = "configured"

// describes reports whether settings are those of the mode.
func (m mode) describes(s p.Settings) bool {
	if m.plan || s.Plan {
		return m.plan && s.Plan
	}
	return m.approval == s.Approval && m.sandbox == s.Sandbox.Mode
}

// modesFor are the modes that can be chosen. Settings that are none of the usual ones are a mode of their own, which can be chosen again.
func (s *session) modesFor(now p.Settings) []mode {
	list := slices.Clone(modes)
	for _, own := range []p.Settings{now, s.configured} {
		known := slices.ContainsFunc(list, func(m mode) bool { return m.describes(own) })
		if !known && own.Sandbox.Mode != "" {
			text := fmt.Sprintf("Sandbox: %s; asks for approval: %s", own.Sandbox.Mode, own.Approval)
			list = append(list, mode{wire.Mode{ID: configuredMode, Name: "As configured", Description: text}, own.Approval, own.Sandbox.Mode, false})
		}
	}
	return slices.DeleteFunc(list, func(m mode) bool {
		return !m.plan && !m.describes(now) && s.c.s.o.Local.Allows(m.apply(now)) != nil
	})
}

func (m mode) apply(s p.Settings) p.Settings {
	s.Approval, s.Sandbox.Mode, s.Plan = m.approval, m.sandbox, false
	return s
}

// state is what can be chosen in a session, and what is chosen.
func (s *session) state(ctx context.Context, now p.Settings) wire.State {
	list := s.modesFor(now)
	out := &wire.Modes{Available: []wire.Mode{}}
	choices := []wire.Choice{}
	for _, m := range list {
		out.Available = append(out.Available, m.Mode)
		choices = append(choices, wire.Choice{Value: m.ID, Name: m.Name, Description: m.Description})
		if m.describes(now) {
			out.Current = m.ID
		}
	}
	mode := wire.Option{Type: "select", ID: "mode", Name: "Mode", Category: "mode", Current: out.Current, Options: choices}
	return wire.State{Modes: out, Options: append([]wire.Option{mode}, s.c.otherOptions(ctx, now)...)}
}

// otherOptions are the model, how much it reasons, and the sandbox.
func (c *conn) otherOptions(ctx context.Context, now p.Settings) []wire.Option {
	known, err := c.s.o.Local.Choices(ctx)
	if err != nil { // what is wrong is said when a turn starts
		known = nil
	}
	at := slices.IndexFunc(known, func(m app.ModelChoice) bool { return m.Provider == now.Provider && m.Model == now.Model })
	if at < 0 {
		at, known = 0, append([]app.ModelChoice{{Provider: now.Provider, Model: now.Model}}, known...)
	}
	models := []wire.Choice{}
	for _, m := range known {
		if m.Provider == now.Provider {
			models = append(models, wire.Choice{Value: m.Model, Name: m.Model})
		}
	}
	list := []wire.Option{{Type: "select", ID: "model", Name: "Model", Category: "model", Current: now.Model, Options: models}}
	if o, ok := effortOption(known[at], now); ok {
		list = append(list, o)
	}
	return append(list, c.sandboxOption(now))
}

// defaultEffort is the value for leaving it to the service.
const defaultEffort = "default"

func effortOption(m app.ModelChoice, now p.Settings) (wire.Option, bool) {
	current := cmp.Or(now.Effort, m.DefaultEffort, defaultEffort)
	efforts := slices.Clone(m.Efforts)
	if !slices.Contains(efforts, current) {
		efforts = append([]string{current}, efforts...)
	}
	o := wire.Option{Type: "select", ID: "effort", Name: "Reasoning", Description: "How much the model reasons", Category: "thought_level", Current: current}
	for _, e := range efforts {
		o.Options = append(o.Options, wire.Choice{Value: e, Name: e})
	}
	return o, len(m.Efforts) > 0
}

// sandboxes describe the sandbox modes.
var sandboxes = []wire.Choice{
	{Value: string(p.SandboxReadOnly), Name: "Read only", Description: "Commands can read files"},
	{Value: string(p.SandboxWorkspaceWrite), Name: "Workspace", Description: "Commands can also write in the directory"},
	{Value: string(p.SandboxFullAccess), Name: "None", Description: "Commands can do what you can: only where nothing can be damaged"},
}

func (c *conn) sandboxOption(now p.Settings) wire.Option {
	list := slices.DeleteFunc(slices.Clone(sandboxes), func(o wire.Choice) bool {
		then := now
		then.Sandbox.Mode = p.SandboxMode(o.Value)
		return then.Sandbox.Mode != now.Sandbox.Mode && c.s.o.Local.Allows(then) != nil
	})
	return wire.Option{Type: "select", ID: "sandbox", Name: "Sandbox", Description: "What commands may touch", Category: "_sandbox", Current: string(now.Sandbox.Mode), Options: list}
}

// changed are the updates that say what is chosen now.
func (s *session) changed(now p.Settings) []any {
	state := s.state(s.c.life, now)
	return []any{
		wire.ModeChanged{Update: "current_mode_update", Current: state.Modes.Current},
		wire.OptionsChanged{Update: "config_option_update", Options: state.Options},
	}
}

func (c *conn) setMode(ctx context.Context, _ *jsonrpc.Request, in wire.SetMode) (wire.None, error) {
	_, err := c.set(ctx, in.SessionID, "mode", in.ModeID)
	return wire.None{}, err
}

// setModel is what clients of an earlier version of the protocol send.
func (c *conn) setModel(ctx context.Context, _ *jsonrpc.Request, in wire.SetModel) (wire.None, error) {
	_, err := c.set(ctx, in.SessionID, "model", in.ModelID)
	return wire.None{}, err
}

func (c *conn) setOption(ctx context.Context, _ *jsonrpc.Request, in wire.SetOption) (wire.Options, error) {
	var value string
	if json.Unmarshal(in.Value, &value) != nil {
		return wire.Options{}, badParams("value: %s is not the value of a choice", in.Value)
	}
	return c.set(ctx, in.SessionID, in.ConfigID, value)
}

// set chooses the value of an option, and returns all options.
func (c *conn) set(ctx context.Context, name, option, value string) (wire.Options, error) {
	s, err := c.find(name)
	if err != nil {
		return wire.Options{}, err
	}
	snap, err := c.s.o.Engine.Resume(ctx, s.id)
	if err != nil {
		return wire.Options{}, failed(err, s.id)
	}
	over, err := s.choose(snap.Settings, option, value)
	if err != nil {
		return wire.Options{}, err
	}
	if _, err := c.s.o.Engine.Submit(ctx, s.id, p.Configure{Overrides: over}); err != nil {
		return wire.Options{}, failed(err, s.id)
	}
	return wire.Options{Options: s.state(ctx, over.Apply(snap.Settings)).Options}, nil
}

// choose is what the value of an option changes.
func (s *session) choose(now p.Settings, option, value string) (p.Overrides, error) {
	var req app.SettingsRequest
	var plan *bool
	switch option {
	case "mode":
		i := slices.IndexFunc(s.modesFor(now), func(m mode) bool { return m.ID == value })
		if i < 0 {
			return p.Overrides{}, s.notChosen(option, value, now)
		}
		m := s.modesFor(now)[i]
		if plan = &m.plan; m.plan {
			return p.Overrides{Plan: plan}, nil
		}
		req.ApprovalPolicy, req.Sandbox = string(m.approval), string(m.sandbox)
	case "model":
		req.Model = value
	case "effort":
		if value == defaultEffort {
			return p.Overrides{Effort: new("")}, nil
		}
		req.Config = map[string]any{"model_reasoning_effort": value}
	case "sandbox":
		if !slices.ContainsFunc(sandboxes, func(o wire.Choice) bool { return o.Value == value }) {
			return p.Overrides{}, s.notChosen(option, value, now)
		}
		req.Sandbox = value
	default:
		return p.Overrides{}, badParams("there is no option %q: there are mode, model, effort, sandbox", option)
	}
	over, _, err := s.c.s.o.Change(now, req)
	if err != nil {
		return p.Overrides{}, refusal(err)
	}
	over.Plan = plan
	return over, nil
}

// notChosen says why a value cannot be chosen: there is none, or it is not allowed here.
func (s *session) notChosen(option, value string, now p.Settings) error {
	for _, m := range modes {
		if m.ID == value && option == "mode" {
			return refusal(s.c.s.o.Local.Allows(m.apply(now)))
		}
	}
	return badParams("%s: there is no %q", option, value)
}
