// Package demo is a stand-in for a model that needs no key and no network.
package demo

import (
	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/model/demo"
	"github.com/fermata-agent/fermata/internal/native"
)

// New returns a model that does what the message says: "talk 20" writes twenty words, slowly; "run: COMMAND" calls the
// shell tool, if there is one; other messages are explained.
func New() engine.Model { return native.Model(demo.New()) }
