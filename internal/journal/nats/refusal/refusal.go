// Package refusal says why NATS servers refuse something or do not answer, in words for people, and which of that passes.
package refusal

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A ConnectError says why there is no connection to the servers.
type ConnectError struct {
	URL  string
	Cert bool // the client has a certificate
	Err  error
}

func (e *ConnectError) Error() string {
	url := Redact(e.URL)
	switch {
	case errors.Is(e.Err, nats.ErrAuthorization), errors.Is(e.Err, nats.ErrAuthExpired):
		return fmt.Sprintf("the NATS server %s refused the credentials: check [store] user, password, token, nkey or creds", url)
	case errors.Is(e.Err, nats.ErrNoServers), errors.Is(e.Err, nats.ErrTimeout):
		return fmt.Sprintf("no NATS server answers at %s: is it running, and is [store] url right?", url)
	case errors.Is(e.Err, nats.ErrSecureConnRequired), errors.Is(e.Err, nats.ErrSecureConnWanted):
		return fmt.Sprintf("connect to NATS at %s: %v: use tls:// in [store] url, and set ca if the certificate is your own", url, e.Err)
	case errors.As(e.Err, new(x509.UnknownAuthorityError)):
		return fmt.Sprintf("the certificate of the NATS server %s is signed by an unknown authority: set [store] ca to the certificate of that authority", url)
	case isClientCertError(e.Err) && e.Cert:
		return fmt.Sprintf("the NATS server %s does not accept the certificate of this client: check [store] cert and key", url)
	case isClientCertError(e.Err):
		return fmt.Sprintf("the NATS server %s wants a certificate of this client: set [store] cert and key", url)
	}
	return fmt.Sprintf("connect to NATS at %s: %v", url, e.Err)
}

// isClientCertError reports whether a server refused this client's certificate, or that there was none. It says
// so only after the handshake: if the connection is closed first, that is all that is known.
func isClientCertError(err error) bool {
	var alert tls.AlertError
	var op *net.OpError
	if errors.As(err, &alert) || errors.As(err, &op) && op.Op == "remote error" {
		return true
	}
	return strings.Contains(err.Error(), "closed by remote after TLS handshake")
}

func (e *ConnectError) Unwrap() error { return e.Err }

// Redact removes passwords from URLs.
func Redact(urls string) string {
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
	case IsLeaderless(e.Err):
		return NoLeader(e.Err).Error()
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("the NATS server does not answer for the stream %s: the user may lack permission for $JS.API.>, or its cluster has no leader", e.Name)
	}
	return fmt.Sprintf("use the stream %s: %v", e.Name, e.Err)
}

func (e *StreamError) Unwrap() error { return e.Err }

// A FullError says that the servers have no room for more.
type FullError struct{ Err error }

func (e *FullError) Error() string {
	return fmt.Sprintf("the stream is full (%v): delete conversations, or raise its limit with fermata store set max_bytes", e.Err)
}

func (e *FullError) Unwrap() error { return e.Err }

// Codes of errors that say that there is no room.
var fullCodes = map[jetstream.ErrorCode]bool{
	10002: true, // resource limits exceeded for account
	10023: true, // insufficient resources
	10028: true, // memory
	10047: true, // storage
	10077: true, // the stream's own limits
}

// IsFull reports whether servers refused something because they have no room for it.
func IsFull(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && fullCodes[api.ErrorCode]
}

// IsConflict reports whether a message was refused because it did not follow the one that it names.
func IsConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// IsTransient reports whether what failed may work when it is tried again.
func IsTransient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503 && !fullCodes[api.ErrorCode] || IsConflict(err)
	}
	return !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, context.Canceled)
}

// IsLeaderless reports whether servers refused because they have no leader, which they elect within seconds.
func IsLeaderless(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == 503 && !fullCodes[api.ErrorCode]
}

// NoLeader says that the servers have no leader.
func NoLeader(err error) error {
	return fmt.Errorf("the NATS servers have no leader (%w): try again in a moment; if that does not help, see that most of them run and reach each other", err)
}

// ErrNoAnswer is the cause of a request's end.
var ErrNoAnswer = errors.New("no answer in time")

// retryWait is the pause before something is tried again.
const retryWait = 50 * time.Millisecond

// UntilLed calls f until it does not fail for want of a leader, or ctx ends.
func UntilLed(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !IsLeaderless(err) {
			return err
		}
		select {
		case <-time.After(retryWait):
		case <-ctx.Done():
			return err
		}
	}
}
