package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/fermata-agent/fermata/internal/app/store"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/remote"
)

// OtherProcesses returns the processes of other machines and homes that use the same store, with what they have open. The
// caller calls the returned function when it has done with them.
func OtherProcesses(ctx context.Context, version string) ([]Process, func(), error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, nil, configError(err)
	}
	settings, err := store.Settings(home)
	if err != nil {
		return nil, nil, configError(err)
	}
	shared := store.Open(ctx, store.Place{Home: home, Store: settings})
	nodes, err := shared.Nodes(ctx)
	if err != nil {
		shared.Close()
		return nil, nil, err
	}
	o := remote.Options{Client: clientName(""), Program: version, Looks: true, Reach: shared.Reach}
	var list []Process
	for _, n := range nodes {
		ours := n.IsNear() && filepath.Dir(n.Address) == filepath.Join(home, runDir)
		if n.Owner.Node != "" && !ours {
			list = append(list, Process{PID: n.PID, Host: cmp.Or(n.Name, n.Host), owner: n.Owner})
		}
	}
	var asked sync.WaitGroup
	for i := range list {
		asked.Go(func() {
			x := &list[i]
			if x.engine, x.Err = remote.Reach(ctx, x.owner, o); x.Err == nil {
				x.Conversations, x.Err = x.engine.Live(ctx)
			}
		})
	}
	asked.Wait()
	return list, func() {
		disconnect(list)
		shared.Close()
	}, nil
}
