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

// Flags of a server mean nothing for the links to one that runs.
func TestFlagsBesideLinks(t *testing.T) {
	for args, want := range map[string]string{
		"--link": "", "--link --read-only": "", "--list --revoke x": "",
		"--list --read-only": "read-only", "--link --http-name x": "http-name", "--revoke all --tls-key x": "tls-key",
	} {
		var f Flags
		var m Manage
		fs := pflag.NewFlagSet("web", pflag.ContinueOnError)
		f.Register(fs)
		m.Register(fs)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if got, ok := m.Excludes(fs); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", args, got, ok, want)
		}
	}
}
