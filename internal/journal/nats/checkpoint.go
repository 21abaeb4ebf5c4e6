package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

// Checkpoint implements Journal.
func (j *natsJournal) Checkpoint(ctx context.Context, seq uint64, state []byte) error {
	if err := j.MayCheckpoint(seq); err != nil {
		return err
	}
	select {
	case j.checkpointing <- struct{}{}: // one at a time: an older one must not replace a newer
	case <-ctx.Done():
		return fmt.Errorf("checkpoint at record %d: %w", seq, context.Cause(ctx))
	}
	defer func() { <-j.checkpointing }()
	if err := j.link.saveCheckpoint(ctx, j.store.checkpoint(j.id), meta{Node: j.store.node}, encodeCheckpoint(seq, state)); err != nil {
		return fmt.Errorf("checkpoint at record %d: %w", seq, j.store.explain(err))
	}
	return nil
}

// saveCheckpoint stores a body in messages of its own stream, then deletes those of the
// last one. It needs no fence: what two nodes store at once is of use to none.
func (l *link) saveCheckpoint(ctx context.Context, subject string, m meta, body []byte) error {
	b := l.newBatch(subject, m, 0, body, 0)
	first := uint64(0)
	for i := range b.pieces {
		sent, err := l.send(message(subject, b.metaOf(i), b.pieces[i]))
		if err != nil {
			return err
		}
		seq, err := b.await(ctx, sent)
		if err != nil {
			return err
		}
		if i == 0 {
			first = seq
		}
	}
	return l.checkpoints.purge(ctx, subject, first)
}

// encodeCheckpoint writes the number and a wire.Checksum before the state.
func encodeCheckpoint(seq uint64, state []byte) []byte {
	head := fmt.Sprintf("%d %08x\n", seq, wire.Checksum(state))
	return append([]byte(head), state...)
}

func decodeCheckpoint(b []byte) (state []byte, seq uint64, err error) {
	head, state, ok := bytes.Cut(b, []byte("\n"))
	number, sum, ok2 := bytes.Cut(head, []byte(" "))
	seq, err = strconv.ParseUint(string(number), 10, 64)
	if !ok || !ok2 || err != nil || string(sum) != fmt.Sprintf("%08x", wire.Checksum(state)) {
		return nil, 0, errBadCheckpoint
	}
	return state, seq, nil
}

// loadCheckpoint returns the checkpoint if there is one that fits. It may be lost
// at any time: a journal can be opened without.
func (l *link) loadCheckpoint(ctx context.Context, subject string, last uint64) ([]byte, uint64, error) {
	end, err := l.checkpoints.last(ctx, subject)
	if errors.Is(err, errNoMessage) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var a assembler
	var body []byte
	err = l.checkpoints.scan(ctx, subject, 1, end.seq, func(m *stored) bool {
		if b, ok := a.body(m); ok {
			body = b
		}
		return true
	})
	if err != nil {
		return nil, 0, err
	}
	state, seq := usableCheckpoint(body, last)
	return state, seq, nil
}

// usableCheckpoint returns a checkpoint unless it is damaged, or of records that there are not: a node may
// have stored it that was no longer the owner.
func usableCheckpoint(body []byte, last uint64) ([]byte, uint64) {
	state, seq, err := decodeCheckpoint(body)
	if err != nil || seq > last {
		return nil, 0
	}
	return state, seq
}
