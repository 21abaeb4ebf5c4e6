package appserver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/view"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

func (c *conn) configRead(_ context.Context, _ *jsonrpc.Request, in wire.ConfigRead) (wire.ConfigAnswer, error) {
	dir := cmp.Or(c.s.absolute(in.Cwd), c.s.o.Cwd)
	settings, err := c.s.o.Local.ViewConfig(dir)
	if err != nil {
		return wire.ConfigAnswer{}, refuse("%v", err)
	}
	out := view.Config(settings, dir)
	if !in.IncludeLayers {
		out.Layers = nil
	}
	return out, nil
}

func (c *conn) configBatchWrite(_ context.Context, _ *jsonrpc.Request, in wire.ConfigWrite) (wire.ConfigWritten, error) {
	return c.saveConfig(in.FilePath, in.Edits...)
}

func (c *conn) configValueWrite(_ context.Context, _ *jsonrpc.Request, in wire.ConfigValueWrite) (wire.ConfigWritten, error) {
	return c.saveConfig(in.FilePath, in.ConfigEdit)
}

// saveConfig changes the user's configuration file.
func (c *conn) saveConfig(file string, in ...wire.ConfigEdit) (wire.ConfigWritten, error) {
	var edits []app.ConfigEdit
	for _, e := range in {
		switch e.Value.(type) {
		case nil, string:
		default:
			return wire.ConfigWritten{}, badParams("%s: only a text or null can be written", e.KeyPath)
		}
		edits = append(edits, app.ConfigEdit{Path: strings.Split(e.KeyPath, "."), Value: e.Value})
	}
	settings, err := c.s.o.Local.ViewConfig(c.s.o.Cwd)
	if err != nil {
		return wire.ConfigWritten{}, refuse("%v", err)
	}
	if file != "" && file != settings.File {
		return wire.ConfigWritten{}, refuse("only the user's configuration file can be written")
	}
	saved, err := c.s.o.Local.SaveConfig(edits...)
	if err != nil {
		return wire.ConfigWritten{}, refuse("%v", err)
	}
	return wire.ConfigWritten{Status: "ok", Version: view.Checksum(in), FilePath: saved}, nil
}

func (c *conn) requirementsRead(context.Context, *jsonrpc.Request, wire.None) (wire.Requirements, error) {
	modes, policies := c.s.o.Local.Allowed()
	if modes == nil && policies == nil {
		return wire.Requirements{}, nil
	}
	out := &wire.Allowed{}
	for _, mode := range modes {
		out.Sandbox = append(out.Sandbox, string(mode))
	}
	for _, policy := range policies {
		if policy != p.ApprovalOnFailure { // unknown to clients, and whoever allows it allows on-request
			out.Approval = append(out.Approval, string(policy))
		}
	}
	return wire.Requirements{Requirements: out}, nil
}

func (c *conn) profileList(context.Context, *jsonrpc.Request, wire.Anything) (wire.Profiles, error) {
	allowed, _ := c.s.o.Local.Allowed()
	profile := func(id, description string) wire.Profile {
		return wire.Profile{ID: id, Description: description, Allowed: allowed == nil || slices.Contains(allowed, modes[id])}
	}
	return wire.Profiles{Data: []wire.Profile{
		profile(":read-only", "Reads files; asks before anything else"),
		profile(":workspace", "Writes in the working directory; asks before anything else"),
		profile(":danger-full-access", "No sandbox: only where nothing can be damaged"),
	}}, nil
}
