package imports

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fermata-agent/fermata/internal/app/project"
	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Finder finds the conversations of other agents in one project. Nothing is looked at before it is asked.
type Finder struct {
	importer *Importer
	scratch  string
	env      func(string) string
}

// NewFinder returns a finder that imports into a store. The environment says where agents keep their conversations.
func NewFinder(s journal.Store, home, version string, env func(string) string) Finder {
	return Finder{&Importer{Store: s, Version: version, Settings: settingsOf(home)}, filepath.Join(home, scratch), env}
}

// A Found is a conversation of another agent, and whether it is here.
type Found struct {
	foreign.Session
	State State
}

// List returns the conversations of all agents that worked in the project of a directory, the newest first, without those of
// subagents. unread says of which agents they cannot be listed, and why.
func (f Finder) List(ctx context.Context, dir string) (list []Found, unread []string, err error) {
	for _, agent := range foreign.Agents {
		home, err := foreign.FindHome(agent, f.env)
		if err != nil {
			continue // it is not used here
		}
		home.Scratch = f.scratch
		sessions, err := home.List(ctx)
		home.Close()
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil {
			unread = append(unread, fmt.Sprintf("%s: %v", agent, err))
		}
		for _, s := range sessions {
			if s.Parent != "" || s.Damaged != "" || !isOf(s.Cwd, dir) {
				continue
			}
			state, _, err := f.importer.State(ctx, s, "")
			if err != nil {
				return nil, nil, err
			}
			list = append(list, Found{s, state})
		}
	}
	slices.SortStableFunc(list, func(a, b Found) int { return b.Modified.Compare(a.Modified) })
	return list, unread, nil
}

// isOf reports whether a conversation that worked in cwd is one of the project of dir.
func isOf(cwd, dir string) bool {
	root := project.Dir(dir)
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		real = root
	}
	for _, root := range []string{root, real} {
		if rel, err := filepath.Rel(root, cwd); err == nil && cwd != "" && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// Import imports a conversation that List has returned, with those of its subagents, and returns what it is called here.
func (f Finder) Import(ctx context.Context, s foreign.Session) (p.ConversationID, error) {
	home := &foreign.Home{Agent: s.Agent, Scratch: f.scratch}
	if known, err := foreign.FindHome(s.Agent, f.env); err == nil {
		home.Dir = known.Dir
	}
	defer home.Close()
	sessions, err := home.List(ctx)
	if err != nil {
		return "", err
	}
	children := map[string]p.ConversationID{}
	for _, child := range sessions {
		if child.Parent != s.ID || child.Damaged != "" {
			continue
		}
		if c, err := home.Read(ctx, child); err == nil { // one that cannot be read does not keep the other from being imported
			r, err := f.importer.Import(ctx, c, "", nil)
			if err != nil {
				return "", err
			}
			children[child.ID] = r.ID
		}
	}
	c, err := home.Read(ctx, s)
	if err != nil {
		return "", err
	}
	r, err := f.importer.Import(ctx, c, "", children)
	return r.ID, err
}
