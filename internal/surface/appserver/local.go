package appserver

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
)

// shownModels is how many models a client is shown that does not ask for all.
const shownModels = 20

func (c *conn) modelList(ctx context.Context, _ *jsonrpc.Request, in wire.ModelList) (wire.Models, error) {
	out := wire.Models{Data: []wire.Model{}}
	choices, err := c.s.o.Local.Choices(ctx)
	if err != nil {
		return out, refuse("%v", err)
	}
	if !in.IncludeHidden {
		choices = choices[:min(len(choices), shownModels)]
	}
	var all []wire.Model
	for i, m := range choices {
		hidden := i >= shownModels
		w := wire.Model{
			ID: m.Model, Model: m.Model, DisplayName: m.Model, Description: "at " + m.Provider, Hidden: hidden, IsDefault: m.Default,
			Efforts: []wire.EffortOption{}, DefaultEffort: m.DefaultEffort, Modalities: []string{"text"},
		}
		for _, e := range m.Efforts {
			w.Efforts = append(w.Efforts, wire.EffortOption{Effort: e, Description: e + " reasoning effort"})
		}
		if w.DefaultEffort == "" {
			w.DefaultEffort = "none"
		}
		if len(w.Efforts) == 0 {
			w.Efforts = append(w.Efforts, wire.EffortOption{Effort: w.DefaultEffort, Description: "as the model has it"})
		}
		if m.Vision {
			w.Modalities = append(w.Modalities, "image")
		}
		all = append(all, w)
	}
	out.Data, out.NextCursor, err = page(all, in.Cursor, cmp.Or(in.Limit, len(all)), "asc")
	return out, err
}

func (c *conn) accountRead(context.Context, *jsonrpc.Request, wire.AccountRead) (wire.Account, error) {
	if _, ok := c.s.o.Local.Key(); ok {
		return wire.Account{Account: &wire.AccountKind{Type: "apiKey"}}, nil
	}
	return wire.Account{}, nil
}

func (c *conn) skillsList(_ context.Context, _ *jsonrpc.Request, in wire.SkillsList) (wire.Skills, error) {
	out := wire.Skills{Data: []wire.SkillsEntry{}}
	dirs := in.Cwds
	if len(dirs) == 0 {
		dirs = []string{c.s.o.Cwd}
	}
	for _, dir := range dirs {
		entry := wire.SkillsEntry{Cwd: c.s.absolute(dir), Skills: []wire.Skill{}, Errors: []wire.None{}}
		for _, s := range c.s.o.Local.SkillList(dir) {
			scope := "user"
			if s.Project {
				scope = "repo"
			}
			entry.Skills = append(entry.Skills, wire.Skill{Name: s.Name, Description: s.Description, Path: s.File, Scope: scope, Enabled: true})
		}
		out.Data = append(out.Data, entry)
	}
	return out, nil
}

func (c *conn) commandExec(ctx context.Context, r *jsonrpc.Request, in wire.CommandExec) (wire.CommandDone, error) {
	switch {
	case len(in.Command) == 0 || in.Command[0] == "":
		return wire.CommandDone{}, badParams("command: there is none")
	case len(in.Permissions) > 0 && string(in.Permissions) != "null":
		return wire.CommandDone{}, badParams("permissionProfile is not supported: set sandboxPolicy")
	case in.TTY || in.StreamStdin || in.StreamOutput:
		return wire.CommandDone{}, badParams("tty, streamStdin and streamStdoutStderr are not supported")
	case in.DisableTimeout || in.TimeoutMs < 0:
		return wire.CommandDone{}, badParams("a command has a time limit: set timeoutMs")
	}
	policy, err := asSandbox(in.SandboxPolicy)
	if err != nil {
		return wire.CommandDone{}, err
	}
	timeout := time.Duration(min(in.TimeoutMs, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	done, err := c.s.o.Local.RunOnce(r.UntilEnd(ctx), oneoff.Command{Argv: in.Command, Dir: in.Cwd, Env: in.Env, Timeout: timeout, Sandbox: policy})
	if err != nil {
		return wire.CommandDone{}, refuse("%v", err)
	}
	return wire.CommandDone{ExitCode: done.ExitCode, Stdout: done.Stdout, Stderr: done.Stderr}, nil
}
