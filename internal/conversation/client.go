package conversation

import (
	"context"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Client is who submits an op.
type Client struct {
	Name string // for people: events that it causes carry it

	// Op is the client's name of the op. One that is submitted again with the same name, because
	// its answer was lost, is not done again.
	Op string

	// Brings is what the turns that it starts are run with, as Config.For understands it, such as
	// its environment. It is never recorded.
	Brings any
}

type clientKey struct{}

// WithClient says who submits the ops that are submitted with the returned context.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf returns what WithClient said.
func ClientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// with is the configuration with what a client brings.
func (c Config) with(own Config) Config {
	c.Model, c.Tools, c.AwaitTools, c.Retries = own.Model, own.Tools, own.AwaitTools, own.Retries
	c.Window, c.Effort, c.KeepTokens, c.MaxParallel = own.Window, own.Effort, own.KeepTokens, own.MaxParallel
	c.Notify, c.NotifyWaiting = own.Notify, own.NotifyWaiting
	return c.withDefaults()
}

// Runs reports whether an op makes something run.
func Runs(op any) bool {
	switch op.(type) {
	case p.UserTurn, p.UserShell, p.Compact, p.Approve, p.TryNow:
		return true
	}
	return false
}

// bring takes up what the turns of a client are run with. A turn keeps what it was started
// with, and so does one that is waiting, unless another process started it.
func (o *owner) bring(r request) {
	if !Runs(r.op) {
		return
	}
	_, message := r.op.(p.UserTurn)
	switch {
	case o.state.Active && o.brought && message:
		o.bringNext = func() { o.use(r.brings) }
	case !o.state.Active || !o.brought:
		o.use(r.brings)
	}
}

// use has the next turns run with what a client brings, or with our own if that is nothing.
func (o *owner) use(brings *Config) {
	o.cfg, o.brought, o.bringNext = o.own, true, nil
	if brings != nil {
		o.cfg = o.own.with(*brings)
	}
}
