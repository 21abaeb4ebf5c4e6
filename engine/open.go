package engine

import (
	"context"
	"errors"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/panics"
	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// Open makes an engine that runs conversations in this process. Nothing is read or
// written until it is used. ctx gives values to what runs; its end stops nothing: call
// Shutdown when the engine is not needed any longer.
//
// An error is a *FieldError that says what is wrong with the Config.
func Open(ctx context.Context, c Config) (*Local, error) {
	if err := checkTools(c.Tools); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	l := &Local{
		base: context.WithoutCancel(ctx), store: storeOf(c.Store), memory: journal.NewMemoryStore(journal.MemoryOptions{}),
		cfg: c.conversations(), limit: openLimit(descriptors()), over: make(chan struct{}),
		slots: map[p.ConversationID]*slot{}, watches: watches{}, ephemeral: map[p.ConversationID]bool{},
		ready: c.Ready, changed: c.Changed,
	}
	if l.changed == nil {
		l.changed = func() {}
	}
	if s, ok := c.Store.(interface{ Attach(*Local) }); ok {
		s.Attach(l) // a store that is lost stops what writes to it
	}
	return l, nil
}

// conversations is the configuration of all conversations.
func (c Config) conversations() conversation.Config {
	static := toolsOf(c.Tools)
	run := c.turns(c.Turns, static)
	run.Version, run.StopBound, run.Backoff, run.MaxWait = c.Version, c.StopTimeout, c.Backoff, c.MaxWait
	run.Allow, run.Ended, run.Waits, run.Panicked = c.Allow, c.TurnEnded, c.TurnWaits, panics.Log(c.Panicked)
	run.DefaultWindow, run.KeepWaiting = c.DefaultWindow, c.KeepWaiting
	run.IdleAfter, run.IdleFollowed = idleTime(c.IdleAfter, idleAfter), idleTime(c.IdleFollowed, idleFollowed)
	if run.Reclaim = c.Recovery.Reclaim; run.Reclaim == nil {
		run.Reclaim = tool.Reclaim
	}
	if run.Settle = c.Recovery.Settle; run.Settle == nil {
		run.Settle = tool.SettlePatch
	}
	if c.ForClient != nil {
		run.For = func(brings any) (conversation.Config, error) {
			t, err := c.ForClient(brings)
			return c.turns(t, static), err
		}
	}
	return run
}

// turns is the part of it that says what turns are run with.
func (c Config) turns(t TurnConfig, static []tool.Tool) conversation.Config {
	run := conversation.Config{
		Model: func(p.Settings) (model.Client, error) { return clientOf(c.Model), nil },
		Tools: func(p.Settings) []tool.Tool { return static }, AwaitTools: t.AwaitTools,
		Instructions: func(p.Settings) string { return c.Instructions }, Environment: t.Environment,
		Window: t.Window, Effort: t.Effort, Retries: t.Retries, KeepTokens: t.KeepTokens, MaxParallel: t.MaxParallel, Notify: t.Ended, NotifyWaiting: t.Waiting,
	}
	if t.Model != nil {
		run.Model = func(s p.Settings) (model.Client, error) { return chosenClient(t.Model(s)) }
	}
	if t.Tools != nil {
		run.Tools = func(s p.Settings) []tool.Tool { return toolsOf(t.Tools(s)) }
	}
	if t.Instructions != nil {
		run.Instructions = t.Instructions
	}
	return run
}

// chosenClient is the model that a program has chosen for a turn in the form that conversations use.
func chosenClient(m Model, err error) (model.Client, error) {
	if err == nil && isNil(m) {
		err = errors.New("there is no model for these settings")
	}
	if err != nil {
		return nil, err
	}
	return clientOf(m), nil
}

// native returns the form that conversations use of one of this module's own models, tools and stores. They are
// not adapted twice.
func native[T any](v any) (T, bool) {
	if own, ok := v.(interface{ Native() T }); ok {
		return own.Native(), true
	}
	var none T
	return none, false
}
