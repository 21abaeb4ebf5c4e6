package mcpserver

import (
	"context"
	"math"
	"time"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/oneoff"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Local is what the server can be asked about the machine it runs on. Its
// methods return when their context ends.
type Local interface {
	// RunOnce runs a command outside of any conversation, confined as the
	// policy says, or as the configuration does if that is nil.
	RunOnce(ctx context.Context, command oneoff.Command) (oneoff.Result, error)

	// DiffToRemote gives the commit that a remote has and the working tree's
	// difference to it.
	DiffToRemote(ctx context.Context, cwd string) (app.RemoteDiff, error)

	// SavedConfig gives what the configuration file says.
	SavedConfig() (app.SavedConfig, error)

	// Key reports whether there is a key for the model provider. The key itself is
	// empty unless clients may know it.
	Key() (key string, ok bool)
}

// localMethods are the requests about the machine.
func (s *Server) localMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		handle(s, "execOneOffCommand", s.runOnce),
		handle(s, "gitDiffToRemote", s.diffToRemote),
		handle(s, "getUserSavedConfig", s.savedConfig),
		handle(s, "getConfigToml", s.configToml),
		handle(s, "getAuthStatus", s.authStatus),
	}
}

type onceParams struct {
	Command   []string         `json:"command"`
	TimeoutMS int64            `json:"timeoutMs,omitempty"`
	Cwd       string           `json:"cwd,omitempty"`
	Sandbox   *p.SandboxPolicy `json:"sandboxPolicy,omitempty"`
}

func (s *Server) runOnce(ctx context.Context, r *jsonrpc.Request, in onceParams) (oneoff.Result, error) {
	if len(in.Command) == 0 {
		return oneoff.Result{}, jsonrpc.Errorf(jsonrpc.CodeParams, "command is empty")
	}
	if in.TimeoutMS < 0 {
		return oneoff.Result{}, jsonrpc.Errorf(jsonrpc.CodeParams, "timeoutMs is negative")
	}
	if err := checkSandbox(in.Sandbox); err != nil {
		return oneoff.Result{}, err
	}
	timeout := time.Duration(min(in.TimeoutMS, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	return s.o.Local.RunOnce(r.UntilEnd(ctx), oneoff.Command{Argv: in.Command, Dir: in.Cwd, Timeout: timeout, Sandbox: in.Sandbox})
}

// checkSandbox refuses an unknown policy, which must not become one that confines
// less.
func checkSandbox(policy *p.SandboxPolicy) error {
	if policy == nil {
		return nil
	}
	switch policy.Mode {
	case p.SandboxReadOnly, p.SandboxWorkspaceWrite, p.SandboxFullAccess:
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeParams, "sandboxPolicy: there is no mode %q", policy.Mode)
}

type diffParams struct {
	Cwd string `json:"cwd"`
}

func (s *Server) diffToRemote(ctx context.Context, r *jsonrpc.Request, in diffParams) (app.RemoteDiff, error) {
	d, err := s.o.Local.DiffToRemote(r.UntilEnd(ctx), in.Cwd)
	if err != nil {
		return app.RemoteDiff{}, jsonrpc.Errorf(jsonrpc.CodeRequest, "diff %s: %v", in.Cwd, err)
	}
	return d, nil
}

type savedResult struct {
	Config app.SavedConfig `json:"config"`
}

func (s *Server) savedConfig(context.Context, *jsonrpc.Request, empty) (savedResult, error) {
	saved, err := s.o.Local.SavedConfig()
	if err != nil {
		return savedResult{}, requestError(err.Error())
	}
	return savedResult{saved}, nil
}

// configToml is what getUserSavedConfig was for a while.
func (s *Server) configToml(ctx context.Context, r *jsonrpc.Request, in empty) (app.SavedConfig, error) {
	res, err := s.savedConfig(ctx, r, in)
	return res.Config, err
}

type authParams struct {
	IncludeToken *bool `json:"includeToken,omitempty" doc:"give the key, too, if the server was started with --share-key"`
	RefreshToken *bool `json:"refreshToken,omitempty" doc:"makes no difference: a key does not age"`
}

type authResult struct {
	Method    string `json:"authMethod,omitempty"`
	Preferred string `json:"preferredAuthMethod"`
	Token     string `json:"authToken,omitempty"`
}

// authStatus says whether there is a key: there is no other way of being known to a provider.
func (s *Server) authStatus(_ context.Context, _ *jsonrpc.Request, in authParams) (authResult, error) {
	res := authResult{Preferred: "apikey"}
	key, ok := s.o.Local.Key()
	if ok {
		res.Method = "apikey"
	}
	if in.IncludeToken != nil && *in.IncludeToken {
		res.Token = key
	}
	return res, nil
}
