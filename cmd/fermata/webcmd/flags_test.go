package webcmd

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestHTTPFlag(t *testing.T) {
	for args, want := range map[string]string{"": "", "--http": Default, "--http=[::1]:7777": "[::1]:7777", "--http=:80": ":80", "--http=7777": "error"} {
		var f Flags
		fs := pflag.NewFlagSet("web", pflag.ContinueOnError)
		f.Register(fs)
		err := fs.Parse(strings.Fields(args))
		if got := f.Address; want == "error" != (err != nil) || err == nil && got != want {
			t.Errorf("%q: %q, %v", args, got, err)
		}
		if help := fs.FlagUsages(); strings.Contains(help, "[=") || !strings.Contains(help, "--http HOST:PORT ") {
			t.Errorf("help: %s", help)
		}
	}
}
