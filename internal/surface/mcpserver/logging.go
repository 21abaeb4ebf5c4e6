package mcpserver

import (
	"context"
	"fmt"
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

// maxNamed is how many unknown members of requests are named at most.
const maxNamed = 100

// remarkUnknown warns once of each unknown member of a request.
func (s *Server) remarkUnknown(ctx context.Context, request string, members []string) {
	for _, name := range members {
		if name != "_meta" && s.named.addUpTo(maxNamed, request+" "+name) {
			s.remark(ctx, []string{fmt.Sprintf("%s: %q is unknown and has no effect", request, name)})
		}
	}
}

// remark warns people of what of a request has no effect: ours, and those of a client that speaks MCP.
func (s *Server) remark(ctx context.Context, remarks []string) {
	for _, text := range remarks {
		s.o.Log.Warn(text)
		if s.initialized.Load() && s.level.Load() <= levelWarning {
			_ = s.conn.Notify(ctx, "notifications/message", logMessage{levels[levelWarning], "fermata", text}) // if it fails the client has left
		}
	}
}
