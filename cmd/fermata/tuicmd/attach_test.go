package tuicmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/cmd/fermata/managecmd"
	p "github.com/fermata-agent/fermata/protocol"
)

// Without an ID attach joins the only conversation that is open. A process that cannot be asked, and a turn that no process
// runs, are none.
func TestAttachToTheOnlyOne(t *testing.T) {
	live := []managecmd.Live{{PID: 7, Err: errors.New("it is stopped")}, {Snapshot: p.Snapshot{ID: "a"}}, {Snapshot: p.Snapshot{ID: "b"}, PID: 8}}
	id, err := attachTo(t.Context(), cli.NewStreams(nil, nil, nil), live, nil)
	if id != "b" || err != nil {
		t.Errorf("%q, %v, want b", id, err)
	}
}

// attach refuses flags that would mean nothing.
func TestAttachRefusesFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--detach":               "leave out --detach",
		"--read-only -m x":       "leave out --model",
		"--read-only":            "",
		"-m x -s read-only":      "",
		"--read-only --demo x y": "leave out --demo",
	} {
		cmd := attachCommand(cli.NewStreams(nil, nil, nil))
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := checkAttach(cmd.Flags(), cmd.Flags().Changed("read-only"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
