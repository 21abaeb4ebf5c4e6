package mcpserver

import (
	"context"
	"slices"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
)

// levels are those of MCP's log messages, the least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelWarning is what a client gets that has not chosen.
const levelWarning = 3

type levelParams struct {
	Level string `json:"level" enum:"debug,info,notice,warning,error,critical,alert,emergency"`
}

func (s *Server) setLevel(_ context.Context, _ *jsonrpc.Request, in levelParams) (empty, error) {
	s.level.Store(int32(slices.Index(levels, in.Level)))
	return empty{}, nil
}

type logMessage struct {
	Level  string `json:"level"`
	Logger string `json:"logger"`
	Data   string `json:"data"`
}

// remark warns people of what of a request has no effect: ours, and those of a client that speaks MCP.
func (s *Server) remark(ctx context.Context, remarks []string) {
	for _, text := range remarks {
		s.o.Log.Warn(text)
		if s.initialized.Load() && s.level.Load() <= levelWarning {
			_ = s.conn.Notify(ctx, "notifications/message", logMessage{levels[levelWarning], "fermata", text}) // if it fails nobody is there
		}
	}
}
