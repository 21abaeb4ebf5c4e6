package remote

import (
	"context"
	"encoding/json"
	"errors"
	"syscall"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// ErrLost says that the owner's process has ended, or its connection has. What was
// asked last may have been done or not.
var ErrLost = errors.New("the process that has the conversation open has gone")

// ErrLeaving says that the owner is about to end. Its conversations are free when it has.
var ErrLeaving = errors.New("the process that has the conversation open is ending")

// sentinels are the errors that clients compare with, by their names on the wire.
var sentinels = []struct {
	name string
	err  error
}{
	{"not_found", engine.ErrNotFound},
	{"closed", engine.ErrClosed},
	{"nothing_to_stop", engine.ErrNothingToStop},
	{"no_approval", engine.ErrNoApproval},
	{"no_elicitation", engine.ErrNoElicitation},
	{"no_input", engine.ErrNoInput},
	{"not_returned", engine.ErrNotReturned},
	{"busy", engine.ErrBusy},
	{"empty", engine.ErrEmpty},
	{"when_busy", engine.ErrWhenBusy},
	{"steer_settings", engine.ErrSteerSettings},
	{"not_steerable", engine.ErrNotSteerable},
	{"decision", engine.ErrDecision},
	{"no_background", engine.ErrNoBackground},
	{"revert", engine.ErrRevert},
	{"no_op", engine.ErrNoOp},
	{"leaving", ErrLeaving},
	{"lost", ErrLost},
	{"canceled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
}

// A wireError is an error on its way: what it says, and all that clients look for
// in it.
type wireError struct {
	Text    string             `json:"text"`
	Is      []string           `json:"is,omitempty"` // names of sentinels
	Locked  *engine.Owner      `json:"locked,omitempty"`
	Field   *engine.FieldError `json:"field,omitempty"`
	Failure *p.Error           `json:"failure,omitempty"`
	Version *VersionError      `json:"version,omitempty"`
	Errno   syscall.Errno      `json:"errno,omitempty"`
}

func encodeError(err error) *wireError {
	w := &wireError{Text: err.Error()}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			w.Is = append(w.Is, s.name)
		}
	}
	if locked := (*engine.LockedError)(nil); errors.As(err, &locked) {
		w.Locked = &locked.Owner
	}
	errors.As(err, &w.Field)
	errors.As(err, &w.Failure)
	errors.As(err, &w.Version)
	errors.As(err, &w.Errno)
	return w
}

// A remoteError is an error of another process.
type remoteError struct {
	text  string
	inner []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.inner }

func (w *wireError) decode() error {
	e := &remoteError{text: w.Text}
	for _, s := range sentinels {
		for _, name := range w.Is {
			if s.name == name {
				e.inner = append(e.inner, s.err)
			}
		}
	}
	if w.Locked != nil {
		e.inner = append(e.inner, &engine.LockedError{Owner: *w.Locked})
	}
	if w.Field != nil {
		e.inner = append(e.inner, w.Field)
	}
	if w.Failure != nil {
		e.inner = append(e.inner, w.Failure)
	}
	if w.Version != nil {
		e.inner = append(e.inner, w.Version)
	}
	if w.Errno != 0 {
		e.inner = append(e.inner, w.Errno)
	}
	return e
}

// toRPC is an error as the answer to a request.
func toRPC(err error) error {
	if err == nil {
		return nil
	}
	data, jerr := json.Marshal(encodeError(err))
	if jerr != nil {
		return err // its text is sent
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error(), Data: data}
}

// fromRPC is what toRPC was given.
func fromRPC(err error) error {
	if errors.Is(err, jsonrpc.ErrClosed) {
		return ErrLost
	}
	answer := (*jsonrpc.Error)(nil)
	if !errors.As(err, &answer) {
		return err
	}
	var w wireError
	if json.Unmarshal(answer.Data, &w) != nil || w.Text == "" {
		return err
	}
	return w.decode()
}
