package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// A takenError says that another node has opened the conversation meanwhile.
type takenError struct{ node string }

func (e *takenError) Error() string {
	return "another node (" + e.node + ") has taken this conversation over: what was not saved until then is lost"
}

// persist calls f until it works, as long as all that is missing is a leader and there is time.
func persist(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, refusal.ErrNoAnswer)
	defer cancel()
	return refusal.UntilLed(ctx, func() error {
		err := f(ctx)
		if errors.Is(err, nats.ErrNoResponders) { // a stream that was there has no leader
			err = &jetstream.APIError{Code: 503, Description: "no responders"}
		}
		return err
	})
}

// explain gives an error the words that help.
func (s *Store) explain(err error) error {
	switch {
	case errors.As(err, new(*refusal.FullError)):
		return err
	case refusal.IsFull(err):
		return &refusal.FullError{Err: err}
	case refusal.IsLeaderless(err):
		return refusal.NoLeader(err)
	case errors.As(err, new(*refusal.ConnectError)), errors.As(err, new(*refusal.StreamError)):
		return err
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, refusal.ErrNoAnswer):
		return fmt.Errorf("the NATS servers at %s do not answer: %w", refusal.Redact(s.o.URL), err)
	}
	return err
}
