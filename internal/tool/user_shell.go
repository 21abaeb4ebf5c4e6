package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/turn"
	"github.com/fermata-agent/fermata/protocol"
)

// UserShell runs a command line that the user typed. It is not offered to a
// model, and one that calls it all the same is under the policy of Shell.
type UserShell struct{ Shell *Shell }

// userTimeout is longer than anybody watches: the user stops what takes too long.
const userTimeout = 24 * time.Hour

// Spec names the tool.
func (u *UserShell) Spec() model.ToolSpec {
	return model.ToolSpec{Name: turn.UserShell, Kind: protocol.CallFunction}
}

// ReadOnly reports that it runs alone.
func (u *UserShell) ReadOnly() bool { return false }

// Run runs the command line as Shell would.
func (u *UserShell) Run(ctx context.Context, call Call) Result {
	var a struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil {
		return failure("failed to parse function arguments: " + err.Error())
	}
	args, err := json.Marshal(map[string]any{
		"command": []string{"bash", "-lc", a.Command}, "timeout_ms": userTimeout.Milliseconds(),
	})
	if err != nil {
		return failure(err.Error())
	}
	call.Arguments = string(args)
	return u.Shell.Run(ctx, call)
}
