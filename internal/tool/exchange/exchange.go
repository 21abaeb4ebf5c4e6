// Package exchange takes a call to one of the tools of package tool through the public form of tools, which says less,
// and its whole result back: a program may put a tool of its own around it.
package exchange

import (
	"context"

	"github.com/fermata-agent/fermata/internal/tool"
)

// An Exchange is a call and its result.
type Exchange struct {
	Call   tool.Call
	Result *tool.Result // nil if the tool was not run
}

type key struct{}

// With makes the exchange of a call known to the tool that is run with the returned context.
func With(ctx context.Context, x *Exchange) context.Context { return context.WithValue(ctx, key{}, x) }

// Of returns the exchange of the call that is run with ctx, nil if no conversation runs it.
func Of(ctx context.Context) *Exchange {
	x, _ := ctx.Value(key{}).(*Exchange)
	return x
}
