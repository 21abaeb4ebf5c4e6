package anthropic_test

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/anthropic"
	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

func TestConform(t *testing.T) {
	modeltest.Conform(t, modeltest.Adapter{
		Wire: wirecheck.Anthropic, Custom: true,
		New: func(c modeltest.Config) model.Client {
			return anthropic.New(anthropic.Options{BaseURL: c.URL, Key: c.Key, HTTP: c.HTTP, IdleTimeout: c.Idle})
		},
	})
}
