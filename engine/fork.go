package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Fork copies a conversation into a new one. The original is only read.
func (l *Local) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	entries, err := l.forkEntries(ctx, id, upTo)
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	fork, err := newID(ctx)
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	begin, err := restart(entries, fork, id)
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	entries = append(entries, endBackground(entries)...)
	start := func(ctx context.Context, j journal.Journal) (*conversation.Conversation, error) {
		if err := appendAll(ctx, j, entries); err != nil {
			return nil, err
		}
		cfg := l.cfg
		cfg.ID = fork
		return conversation.Open(l.base, cfg, j)
	}
	err = l.once(ctx, fork, len(entries), func() error { return l.create(ctx, fork, fork.Time(), begin.Settings.Ephemeral, start) })
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	return fork, nil
}

// forkEntries reads the records up to the end of the last turn that ended at
// or before upTo: a partial turn cannot be resumed.
func (l *Local) forkEntries(ctx context.Context, id p.ConversationID, upTo p.Seq) ([]journal.Entry, error) {
	v, err := l.view(ctx, id)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	var entries []journal.Entry
	whole, active := 0, false
	for after := uint64(0); ; {
		recs, err := v.Read(ctx, after, 1000)
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			if upTo != 0 && r.Seq > uint64(upTo) {
				return entries[:whole], nil
			}
			after = r.Seq
			entries = append(entries, journal.Entry{Turn: r.Turn, Kind: r.Kind, Body: r.Body})
			switch r.Kind {
			case "turn_started":
				active = true
			case "turn_ended":
				active = false
			}
			if !active {
				whole = len(entries)
			}
		}
		if len(recs) == 0 {
			return entries[:whole], nil
		}
	}
}

// endBackground returns the ends, for the fork, of the background commands that
// run: they are the original's, and run on there.
func endBackground(entries []journal.Entry) []journal.Entry {
	var running []p.BackgroundID
	for _, e := range entries {
		var b struct {
			ID p.BackgroundID `json:"id"`
		}
		switch e.Kind {
		case "background_started":
			_ = json.Unmarshal(e.Body, &b) // what cannot be read ends nothing
			running = append(running, b.ID)
		case "background_ended":
			_ = json.Unmarshal(e.Body, &b)
			running = slices.DeleteFunc(running, func(id p.BackgroundID) bool { return id == b.ID })
		}
	}
	var ends []journal.Entry
	for _, id := range running {
		end := &p.BackgroundEnded{ID: id, Reason: p.Interrupted, Result: p.CommandResult{ExitCode: -1}}
		body, _ := json.Marshal(end) // numbers and words: cannot fail
		ends = append(ends, journal.Entry{Kind: p.Kind(end), Body: body})
	}
	return ends
}

// restart makes the first entry that of a conversation of its own, and returns it.
func restart(entries []journal.Entry, fork, from p.ConversationID) (p.ConversationStarted, error) {
	var begin p.ConversationStarted
	if len(entries) == 0 {
		return begin, errors.New("it is empty")
	}
	if err := json.Unmarshal(entries[0].Body, &begin); err != nil || entries[0].Kind != "conversation_started" {
		return begin, errors.New("its first record is damaged")
	}
	begin.ID = fork
	begin.Fork = &p.ForkPoint{ID: from, Seq: p.Seq(len(entries))}
	body, err := json.Marshal(begin)
	entries[0].Body = body
	return begin, err
}

// appendAll writes entries to a new journal and waits until they are durable.
func appendAll(ctx context.Context, j journal.Journal, entries []journal.Entry) error {
	var last uint64
	for _, e := range entries { // one by one: together they are no batch
		last = j.Append(e)
	}
	for {
		n, err := j.Durable()
		if err != nil {
			j.Close()
			return err
		}
		if n >= last {
			return nil
		}
		select {
		case <-j.Notify():
		case <-ctx.Done():
			j.Close()
			return context.Cause(ctx)
		}
	}
}
