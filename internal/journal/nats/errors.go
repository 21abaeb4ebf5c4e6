package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A ConnectError says why there is no connection to the servers.
type ConnectError struct {
	URL string
	Err error
}

func (e *ConnectError) Error() string {
	url := redact(e.URL)
	switch {
	case errors.Is(e.Err, nats.ErrAuthorization), errors.Is(e.Err, nats.ErrAuthExpired):
		return fmt.Sprintf("the NATS server %s refused the credentials: check [store] user, password, token, nkey or creds", url)
	case errors.Is(e.Err, nats.ErrNoServers), errors.Is(e.Err, nats.ErrTimeout):
		return fmt.Sprintf("no NATS server answers at %s: is it running, and is [store] url right?", url)
	case errors.Is(e.Err, nats.ErrSecureConnRequired), errors.Is(e.Err, nats.ErrSecureConnWanted):
		return fmt.Sprintf("connect to NATS at %s: %v: use tls:// in [store] url, and set ca if the certificate is your own", url, e.Err)
	}
	return fmt.Sprintf("connect to NATS at %s: %v", url, e.Err)
}

func (e *ConnectError) Unwrap() error { return e.Err }

// redact removes passwords from URLs.
func redact(urls string) string {
	parts := strings.Split(urls, ",")
	for i, p := range parts {
		scheme, rest, ok := strings.Cut(p, "://")
		if !ok {
			scheme, rest = "", p
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		if ok {
			rest = scheme + "://" + rest
		}
		parts[i] = strings.TrimSpace(rest)
	}
	return strings.Join(parts, ",")
}

// A StreamError says why a stream or a bucket cannot be used.
type StreamError struct {
	Name string
	Err  error
}

func (e *StreamError) Error() string {
	var api *jetstream.APIError
	switch {
	case errors.Is(e.Err, jetstream.ErrJetStreamNotEnabled), errors.Is(e.Err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(e.Err, nats.ErrNoResponders), errors.Is(e.Err, jetstream.ErrNoStreamResponse):
		return "the NATS server has no JetStream for this account: start it with -js, or give the account JetStream"
	case errors.Is(e.Err, nats.ErrPermissionViolation), errors.As(e.Err, &api) && api.Code == 403:
		return fmt.Sprintf("this user may not use the stream %s: %v", e.Name, e.Err)
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("the NATS server does not answer for the stream %s: the user may lack permission for $JS.API.>, or its cluster has no leader", e.Name)
	}
	return fmt.Sprintf("use the stream %s: %v", e.Name, e.Err)
}

func (e *StreamError) Unwrap() error { return e.Err }

// A FullError says that the servers have no room for more.
type FullError struct{ Err error }

func (e *FullError) Error() string {
	return fmt.Sprintf("the stream is full (%v): raise its limit, or delete conversations", e.Err)
}

func (e *FullError) Unwrap() error { return e.Err }

// A takenError says that another node has opened the conversation meanwhile.
type takenError struct{ node string }

func (e *takenError) Error() string {
	return "another node (" + e.node + ") has taken this conversation over: what was not saved until then is lost"
}

// Codes of errors that say that there is no room.
var fullCodes = map[jetstream.ErrorCode]bool{
	10002: true, // resource limits exceeded for account
	10023: true, // insufficient resources
	10028: true, // memory
	10047: true, // storage
	10077: true, // the stream's own limits
}

// transient reports whether what failed may work when it is tried again.
func transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503 && !fullCodes[api.ErrorCode] || isConflict(err)
	}
	return !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, context.Canceled)
}

// explain gives an error the words that help.
func (s *Store) explain(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && fullCodes[api.ErrorCode]:
		return &FullError{err}
	case errors.As(err, new(*ConnectError)), errors.As(err, new(*StreamError)):
		return err
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, errNoAnswer):
		return fmt.Errorf("the NATS servers at %s do not answer: %w", redact(s.o.URL), err)
	}
	return err
}

// errNoAnswer is the cause of a request's end.
var errNoAnswer = errors.New("no answer in time")
