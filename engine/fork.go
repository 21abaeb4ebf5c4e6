package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-agent/fermata/internal/conversation"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// Fork copies a conversation into a new one. The original is only read.
func (l *Local) Fork(ctx context.Context, id p.ConversationID, upTo p.Seq) (p.ConversationID, error) {
	v, err := l.store.View(string(id))
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	defer v.Close()
	entries, err := forkEntries(v, upTo)
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	now := time.Now()
	fork := p.NewConversationID(now)
	if err := restart(entries, fork, id); err != nil {
		return "", err
	}
	_, err = l.slot(ctx, fork, func() (*conversation.Conversation, error) {
		j, err := l.store.Create(string(fork), now)
		if err != nil {
			return nil, err
		}
		if err := appendAll(ctx, j, entries); err != nil {
			return nil, err
		}
		cfg := l.cfg
		cfg.ID = fork
		return conversation.Open(l.base, cfg, j)
	})
	if err != nil {
		return "", fmt.Errorf("fork conversation %s: %w", id, err)
	}
	return fork, nil
}

// forkEntries reads the records up to the end of the last turn that ended at
// or before upTo: half a turn cannot be gone on with.
func forkEntries(v journal.View, upTo p.Seq) ([]journal.Entry, error) {
	var entries []journal.Entry
	whole, active := 0, false
	for after := uint64(0); ; {
		recs, err := v.Read(after, 1000)
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

// restart makes the first entry that of a conversation of its own.
func restart(entries []journal.Entry, fork, from p.ConversationID) error {
	if len(entries) == 0 {
		return fmt.Errorf("fork conversation %s: it is empty", from)
	}
	var begin p.ConversationStarted
	if err := json.Unmarshal(entries[0].Body, &begin); err != nil || entries[0].Kind != "conversation_started" {
		return fmt.Errorf("fork conversation %s: its first record is damaged", from)
	}
	begin.ID = fork
	begin.Fork = &p.ForkPoint{ID: from, Seq: p.Seq(len(entries))}
	body, err := json.Marshal(begin)
	entries[0].Body = body
	return err
}

// appendAll writes entries to a new journal and waits until they are durable.
func appendAll(ctx context.Context, j journal.Journal, entries []journal.Entry) error {
	last := j.Append(entries...)
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
