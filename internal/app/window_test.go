package app

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// Of a model of which nothing is known people are warned once.
func TestWarnOfUnknown(t *testing.T) {
	var said []string
	a := &App{Models: &Models{config: &config.Config{Home: t.TempDir()}}, warn: func(w config.Warning) { said = append(said, w.String()) }}
	for _, s := range []p.Settings{
		{Provider: "mine", Model: "llama"},
		{Provider: "mine", Model: "llama"},
		{Provider: "mine", Model: "known", ContextWindow: 1000},
		{Provider: config.Demo},
	} {
		a.warnOfUnknown(s)
	}
	if len(said) != 1 || !strings.Contains(said[0], `"llama"`) || !strings.Contains(said[0], "model_context_window") {
		t.Errorf("%q", said)
	}
}
