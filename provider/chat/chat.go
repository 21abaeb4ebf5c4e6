// Package chat speaks the Chat Completions API, as most services and local servers do.
package chat

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/model/chat"
	"github.com/fermata-agent/fermata/internal/model/wire"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/provider"
)

// New returns the models of a service, OpenAI's own if BaseURL is empty. Nothing is sent until a
// turn needs it. Errors are *protocol.Error values that say what kind of failure it was, and whether it is worth another try.
func New(s provider.Service) engine.Model { return native.Model(chat.New(wire.Service(s))) }
