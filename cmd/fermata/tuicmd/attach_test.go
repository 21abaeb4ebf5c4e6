package tuicmd

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

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
