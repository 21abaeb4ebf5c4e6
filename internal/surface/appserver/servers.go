package appserver

import (
	"cmp"
	"context"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/view"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
)

// serverStatusList lists the MCP servers. It starts none: the tools of one that has not been
// started are those of the last time, if there was one.
func (c *conn) serverStatusList(_ context.Context, _ *jsonrpc.Request, in wire.ServerStatusList) (wire.ServerStatuses, error) {
	all := []wire.ServerStatus{}
	for _, s := range c.s.o.Local.MCPStatus() {
		if in.ServerName == "" || in.ServerName == s.Name {
			all = append(all, view.Server(s))
		}
	}
	data, next, err := page(all, in.Cursor, cmp.Or(in.Limit, len(all)), "asc")
	return wire.ServerStatuses{Data: data, NextCursor: next}, err
}
