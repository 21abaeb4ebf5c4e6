package mcpserver

import (
	"context"
	"time"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Local is what the server can be asked about the machine it runs on. Its
// methods return when their context ends.
type Local interface {
	// RunOnce runs a command outside of any conversation, confined as the
	// policy says, or as the configuration does if that is nil.
	RunOnce(ctx context.Context, command []string, cwd string, timeout time.Duration, sandbox *p.SandboxPolicy) (OneOff, error)

	// DiffToRemote gives the commit that a remote has and the working tree's
	// difference to it.
	DiffToRemote(ctx context.Context, cwd string) (RemoteDiff, error)

	// SavedConfig gives what the configuration file says.
	SavedConfig() SavedConfig
}

// A OneOff is how a command ended that was run outside of any conversation.
type OneOff struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// A RemoteDiff is the difference of a working tree to what a remote has.
type RemoteDiff struct {
	SHA  string `json:"sha"`
	Diff string `json:"diff"`
}

// A SavedConfig is what the configuration file says, as far as clients know it.
type SavedConfig struct {
	ApprovalPolicy  string         `json:"approvalPolicy,omitempty"`
	SandboxMode     string         `json:"sandboxMode,omitempty"`
	SandboxSettings *SavedSandbox  `json:"sandboxSettings,omitempty"`
	Model           string         `json:"model,omitempty"`
	Effort          string         `json:"modelReasoningEffort,omitempty"`
	Summary         string         `json:"modelReasoningSummary,omitempty"`
	Verbosity       string         `json:"modelVerbosity,omitempty"`
	Profile         string         `json:"profile,omitempty"`
	Profiles        map[string]any `json:"profiles"`
}

// A SavedSandbox is what the file says about the sandbox mode workspace-write.
type SavedSandbox struct {
	WritableRoots       []string `json:"writableRoots"`
	NetworkAccess       bool     `json:"networkAccess"`
	ExcludeTmpdirEnvVar bool     `json:"excludeTmpdirEnvVar"`
	ExcludeSlashTmp     bool     `json:"excludeSlashTmp"`
}

// localMethods are the requests about the machine.
func (s *Server) localMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		jsonrpc.Handle("execOneOffCommand", s.runOnce),
		jsonrpc.Handle("gitDiffToRemote", s.diffToRemote),
		jsonrpc.Handle("getUserSavedConfig", s.savedConfig),
	}
}

type onceParams struct {
	Command   []string         `json:"command"`
	TimeoutMS int64            `json:"timeoutMs,omitempty"`
	Cwd       string           `json:"cwd,omitempty"`
	Sandbox   *p.SandboxPolicy `json:"sandboxPolicy,omitempty"`
}

func (s *Server) runOnce(ctx context.Context, r *jsonrpc.Request, in onceParams) (OneOff, error) {
	if len(in.Command) == 0 {
		return OneOff{}, jsonrpc.Errorf(jsonrpc.CodeParams, "command is empty")
	}
	if in.TimeoutMS < 0 {
		return OneOff{}, jsonrpc.Errorf(jsonrpc.CodeParams, "timeoutMs is negative")
	}
	return s.o.Local.RunOnce(r.UntilEnd(ctx), in.Command, in.Cwd, time.Duration(in.TimeoutMS)*time.Millisecond, in.Sandbox)
}

type diffParams struct {
	Cwd string `json:"cwd"`
}

func (s *Server) diffToRemote(ctx context.Context, r *jsonrpc.Request, in diffParams) (RemoteDiff, error) {
	d, err := s.o.Local.DiffToRemote(r.UntilEnd(ctx), in.Cwd)
	if err != nil {
		return RemoteDiff{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "diff %s: %v", in.Cwd, err)
	}
	return d, nil
}

type savedResult struct {
	Config SavedConfig `json:"config"`
}

func (s *Server) savedConfig(context.Context, *jsonrpc.Request, empty) (savedResult, error) {
	return savedResult{s.o.Local.SavedConfig()}, nil
}
