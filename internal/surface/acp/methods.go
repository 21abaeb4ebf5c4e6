package acp

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
)

// Schema describes everything that is answered and sent in JSON Schema.
func Schema() map[string]any { return jsonrpc.Schema((&conn{}).methods()) }

// methods is the table of everything that is answered, and sent.
func (c *conn) methods() []jsonrpc.Method {
	initialize := jsonrpc.Handle("initialize", c.initialize)
	initialize.First = true
	return []jsonrpc.Method{
		initialize,
		handle(c, "authenticate", c.authenticate),
		handle(c, "session/new", c.newSession),
		handle(c, "session/load", c.loadSession).InLane(sessionLane),
		handle(c, "session/resume", c.resumeSession).InLane(sessionLane),
		handle(c, "session/list", c.listSessions),
		handle(c, "session/close", c.closeSession).InLane(sessionLane),
		handle(c, "session/delete", c.deleteSession).InLane(sessionLane),
		handle(c, "session/prompt", c.prompt).InLane(sessionLane),
		handle(c, "session/set_mode", c.setMode).InLane(sessionLane),
		handle(c, "session/set_config_option", c.setOption).InLane(sessionLane),
		handle(c, "session/set_model", c.setModel).InLane(sessionLane),
		jsonrpc.Listen("session/cancel", c.cancel).InLane(sessionLane),

		jsonrpc.Notification[wire.Notification]("session/update"),
		jsonrpc.Ask[wire.RequestPermission, wire.Permission]("session/request_permission"),
		jsonrpc.Ask[wire.Elicit, wire.Elicited]("elicitation/create"),
		jsonrpc.Ask[wire.ReadFile, wire.FileContent]("fs/read_text_file"),
		jsonrpc.Ask[wire.WriteFile, wire.None]("fs/write_text_file"),
	}
}

// handle makes a method that needs an initialized connection.
func handle[P, R any](c *conn, name string, fn func(context.Context, *jsonrpc.Request, P) (R, error)) jsonrpc.Method {
	return jsonrpc.Handle(name, func(ctx context.Context, r *jsonrpc.Request, in P) (R, error) {
		if c.client.Load() == nil {
			var none R
			return none, jsonrpc.Errorf(jsonrpc.CodeRequest, "not initialized: send initialize first")
		}
		return fn(ctx, r, in)
	})
}

// sessionLane keeps what a client sends about a session in order.
func sessionLane(params json.RawMessage) string {
	var in wire.Session
	_ = json.Unmarshal(params, &in) // a bad one is refused by its handler
	return strings.ToLower(in.SessionID)
}
