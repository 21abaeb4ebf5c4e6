package app

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/fleet/worktree"
	"github.com/fermata-agent/fermata/internal/git"
)

// newTrees returns what makes and keeps the work trees of conversations that machines share, nil if they are in files.
func newTrees(ctx context.Context, kept store.Place, warn func(config.Warning)) *worktree.Keeper {
	if kept.Store.URL == "" {
		return nil
	}
	host, _ := os.Hostname() // it is for people
	return &worktree.Keeper{
		Home: kept.Home, Node: cmp.Or(kept.Member.Name, host, "another machine"), Base: context.WithoutCancel(ctx),
		Warn: func(text string) {
			if warn != nil {
				warn(config.Warning{Problem: config.Problem{Text: text}})
			}
		},
	}
}

// Trees returns what makes and keeps the work trees of conversations, nil if no other machine shares them.
func (a *App) Trees() *worktree.Keeper { return a.trees }

// CommitOf returns the commit that a source means, if the working directory is in a clone of its repository that has it; else
// what it is called, for who fetches it.
func (a *App) CommitOf(ctx context.Context, from git.Source) string {
	if from.Ref == "" {
		return ""
	}
	repo, err := OpenGit(ctx, a.Config.Home, a.Cwd)
	if err != nil {
		return from.Ref // who fetches it says what is wrong
	}
	defer repo.Close()
	urls, err := repo.RemoteURLs(ctx)
	if err != nil || !slices.Contains(urls, from.URL) {
		return from.Ref
	}
	commit, err := repo.Commit(ctx, from.Ref)
	if err != nil {
		return from.Ref
	}
	return commit
}
