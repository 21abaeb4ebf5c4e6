package store

import (
	"cmp"
	"context"
	"os"

	"github.com/fermata-agent/fermata/internal/fleet/worktree"
)

// Trees returns what makes and keeps the work trees of conversations that machines share, nil if they are in files. It has
// no store yet.
func Trees(ctx context.Context, p Place, warn func(string)) *worktree.Keeper {
	if p.Store.URL == "" {
		return nil
	}
	host, _ := os.Hostname() // it is for people
	return &worktree.Keeper{Home: p.Home, Node: cmp.Or(p.Member.Name, host, "another machine"), Base: context.WithoutCancel(ctx), Warn: warn}
}
