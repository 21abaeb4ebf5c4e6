package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// overWire is what a client gets when an engine returns err.
func overWire(t *testing.T, err error) error {
	t.Helper()
	text, jerr := json.Marshal(toRPC(err))
	if jerr != nil {
		t.Fatal(jerr)
	}
	answer := &jsonrpc.Error{}
	if jerr := json.Unmarshal(text, answer); jerr != nil {
		t.Fatal(jerr)
	}
	return fromRPC(answer)
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	for _, s := range sentinels {
		was := fmt.Errorf("do a thing: %w", s.err)
		got := overWire(t, was)
		if got.Error() != was.Error() {
			t.Errorf("%s: reads %q, want %q", s.name, got, was)
		}
		for _, other := range sentinels {
			if errors.Is(got, other.err) != errors.Is(was, other.err) {
				t.Errorf("%v: is %s: %v", was, other.name, errors.Is(got, other.err))
			}
		}
	}
}

func TestErrorValuesSurvive(t *testing.T) {
	locked := &engine.LockedError{Owner: engine.Owner{PID: 7, Host: "h", Address: "/run/x"}}
	if got := (*engine.LockedError)(nil); !errors.As(overWire(t, fmt.Errorf("open: %w", locked)), &got) || *got != *locked {
		t.Errorf("locked: %+v", got)
	}
	field := &engine.FieldError{Field: "Settings.Cwd", Problem: "it is odd"}
	if got := (*engine.FieldError)(nil); !errors.As(overWire(t, field), &got) || *got != *field {
		t.Errorf("field: %+v", got)
	}
	failure := &p.Error{Kind: p.ErrorAuth, Message: "no key", Hint: "get one", Retry: true}
	if got := (*p.Error)(nil); !errors.As(overWire(t, failure), &got) || cmp.Diff(failure, got) != "" {
		t.Errorf("failure: %+v", got)
	}
	full := &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}
	if got := overWire(t, full); !errors.Is(got, syscall.ENOSPC) || got.Error() != full.Error() {
		t.Errorf("full disk: %v", got)
	}
	if got := overWire(t, &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}); !errors.Is(got, os.ErrPermission) {
		t.Errorf("permission: %v", got)
	}
	both := overWire(t, errors.Join(engine.ErrClosed, context.Canceled))
	if !errors.Is(both, engine.ErrClosed) || !errors.Is(both, context.Canceled) || errors.Is(both, engine.ErrBusy) {
		t.Errorf("joined: %v", both)
	}
	if got := overWire(t, errors.New("plain")); got.Error() != "plain" {
		t.Errorf("plain: %v", got)
	}
}

func TestVersions(t *testing.T) {
	for name, tt := range map[string]struct {
		h    hello
		want int
	}{
		"the same":           {hello{Oldest: 1, Newest: 1}, 1},
		"newer, and knows 1": {hello{Oldest: 1, Newest: 9}, 1},
		"too new":            {hello{Oldest: 2, Newest: 9}, 0},
		"too old":            {hello{Oldest: 0, Newest: 0}, 0},
	} {
		got, err := agree(tt.h)
		if got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("%s: version %d, %v", name, got, err)
		}
	}
	_, err := agree(hello{Oldest: 2, Newest: 9})
	if got := (*VersionError)(nil); !errors.As(overWire(t, err), &got) || got.Theirs != 9 {
		t.Errorf("the error is %v", err)
	}
}
