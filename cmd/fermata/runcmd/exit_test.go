package runcmd

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestExitFor(t *testing.T) {
	completed, interrupted := p.TurnEnded{Reason: p.Completed}, p.TurnEnded{Reason: p.Interrupted}
	for name, c := range map[string]struct {
		end  engine.TurnEnd
		by   os.Signal
		want int
	}{
		"completed":               {engine.TurnEnd{End: completed}, nil, 0},
		"completed, a signal":     {engine.TurnEnd{End: completed}, syscall.SIGINT, 0},
		"completed and not saved": {engine.TurnEnd{End: completed, Unsaved: true}, nil, cli.ExitFailed},
		"interrupted":             {engine.TurnEnd{End: interrupted}, syscall.SIGINT, cli.ExitInterrupted},
		"interrupted by others":   {engine.TurnEnd{End: interrupted}, nil, cli.ExitFailed},
	} {
		got := 0
		var exit *cli.ExitError
		if errors.As(exitFor(c.end, c.by), &exit) {
			got = exit.Code
		}
		if got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}
