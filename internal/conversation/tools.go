package conversation

import (
	"context"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// makeTools makes the tools of the turn, and counts what they cost in each request.
// Those that are not known yet are added before the first request.
func (o *owner) makeTools() {
	o.await = nil
	if o.cfg.AwaitTools != nil {
		o.await = o.cfg.AwaitTools(o.state.TurnSettings)
	}
	o.listTools()
}

func (o *owner) listTools() {
	o.tools = o.cfg.Tools(o.state.TurnSettings)
	for _, t := range o.lookup() {
		o.tools = append(o.tools[:len(o.tools):len(o.tools)], tool.Hidden(t)) // a model may know them from before
	}
	n := len(o.instructions())
	for _, spec := range o.toolSpecs() {
		n += len(spec.Name) + len(spec.Description) + len(spec.Parameters) + len(spec.Grammar) + 60
	}
	o.overhead = history.Tokens(int64(n))
}

// An awaitTools waits for tools, see Config.AwaitTools. Nil waits for nothing.
type awaitTools func(context.Context) (warnings []string, err error)

// toolsAwaited says that the tools of a turn are known.
type toolsAwaited struct {
	warnings []string
	then     func()       // called by the owner when it has the tools; may be nil
	dropped  chan<- error // has room for one: nil when it is done
}

// tools waits, in a worker of a turn, until its tools are known, and has the owner take
// them up and call then.
func (f awaitTools) tools(ctx context.Context, c *Conversation, id p.TurnID, then func()) error {
	if f == nil {
		return nil
	}
	warnings, err := f(ctx)
	if err != nil {
		return err
	}
	taken := make(chan error, 1)
	if !c.send(message{turn: id, await: &toolsAwaited{warnings, then, taken}}) {
		return ErrClosed
	}
	select {
	case err := <-taken:
		return err
	case <-c.done:
		return ErrClosed
	}
}

// toolsKnown takes up the tools of the turn.
func (o *owner) toolsKnown(m *toolsAwaited) {
	for _, text := range m.warnings {
		if !o.state.Warned[text] && o.failed == nil {
			o.record(p.Event{Turn: o.state.Turn, Body: &p.Notice{Text: text, Warn: true}})
		}
	}
	if o.await != nil { // the list of a turn changes only once
		o.await = nil
		o.listTools()
	}
	if m.then != nil {
		m.then()
	}
	m.dropped <- nil
	o.durable()
}
