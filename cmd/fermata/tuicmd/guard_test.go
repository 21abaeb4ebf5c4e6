package tuicmd

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
)

func TestLastWords(t *testing.T) {
	for text, want := range map[string][3]string{
		"":                                     {"", "", ""},
		"fermata: shows A\nfermata: shows B\n": {"B", "", ""},
		"fermata: shows A\nfermata: bye\n":     {"A", "", "bye"},
		"fermata: shows A\npanic: ouch\n\ngoroutine 1:\n": {"A", "panic: ouch\n\ngoroutine 1:\n", ""},
	} {
		id, crash, bye := lastWords([]byte(text))
		said := ""
		if bye {
			said = "bye"
		}
		if got := [3]string{id, crash, said}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What is not a terminal needs no guard, and nothing happens without one.
func TestNoGuard(t *testing.T) {
	g := startGuard(cli.NewStreams(strings.NewReader(""), nil, nil))
	g.shows("A")
	g.dismiss()
	if g.cmd != nil {
		t.Error("there is one")
	}
}
