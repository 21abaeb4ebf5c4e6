package nats

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

// listBatch is how many conversations are fetched at once.
const listBatch = 500

// List implements Store: the last message of each subject says how its conversation
// stands.
func (s *Store) List(ctx context.Context) ([]journal.Info, error) {
	infos, err := s.list(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	return infos, nil
}

func (s *Store) list(ctx context.Context) ([]journal.Info, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	var c jetstream.Consumer
	err = persist(ctx, func(ctx context.Context) (err error) {
		c, err = l.js.CreateConsumer(ctx, s.o.Name, jetstream.ConsumerConfig{
			FilterSubject: s.o.Name + ".c.*.*", DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
			AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer l.js.DeleteConsumer(context.WithoutCancel(ctx), s.o.Name, c.CachedInfo().Name)
	left := c.CachedInfo().NumPending
	latest := make(map[string]*stored)
	for left > 0 {
		got, err := fetch(ctx, c, int(min(left, listBatch)), func(m jetstream.Msg) error {
			md, err := m.Metadata()
			if err != nil {
				return err
			}
			st := &stored{subject: m.Subject(), seq: md.Sequence.Stream, time: md.Timestamp}
			if st.meta, err = wire.ParseMeta(m.Headers().Get(wire.Header)); err != nil {
				return nil // not ours
			}
			id := s.idOf(st.subject)
			if old := latest[id]; old == nil || old.seq < st.seq {
				latest[id] = st
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		left -= min(left, got)
	}
	infos := make([]journal.Info, 0, len(latest))
	for id, m := range latest {
		infos = append(infos, m.info(id))
	}
	return infos, nil
}

// fetch calls take with the next messages of a consumer, at most so many and at least one. A server of a cluster may
// not know yet of a consumer that another one has just made.
func fetch(ctx context.Context, c jetstream.Consumer, most int, take func(jetstream.Msg) error) (got uint64, err error) {
	err = persist(ctx, func(context.Context) error {
		batch, err := c.Fetch(most, jetstream.FetchMaxWait(requestTimeout))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			got++
			if err == nil {
				err = take(m)
			}
		}
		switch {
		case err != nil:
			return err
		case got > 0:
			return nil
		case batch.Error() != nil:
			return batch.Error()
		}
		return refusal.ErrNoAnswer
	})
	return got, err
}
