package mcpserver

import (
	"context"
	"math"
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
	SavedConfig() (SavedConfig, error)

	// Key gives the key of the model provider, empty if there is none.
	Key() string
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

// A SavedConfig is what the configuration file says, as far as clients know it. The
// file's names are beside theirs.
type SavedConfig struct {
	ApprovalPolicy  string                  `json:"approvalPolicy,omitempty" toml:"approval_policy"`
	SandboxMode     string                  `json:"sandboxMode,omitempty" toml:"sandbox_mode"`
	SandboxSettings *SavedSandbox           `json:"sandboxSettings,omitempty" toml:"sandbox_workspace_write"`
	Model           string                  `json:"model,omitempty" toml:"model"`
	Effort          string                  `json:"modelReasoningEffort,omitempty" toml:"model_reasoning_effort"`
	Summary         string                  `json:"modelReasoningSummary,omitempty" toml:"model_reasoning_summary"`
	Verbosity       string                  `json:"modelVerbosity,omitempty" toml:"model_verbosity"`
	Tools           *SavedTools             `json:"tools,omitempty" toml:"tools"`
	Profile         string                  `json:"profile,omitempty" toml:"profile"`
	Profiles        map[string]SavedProfile `json:"profiles" toml:"profiles"`
}

// A SavedSandbox is what the file says about the sandbox mode workspace-write.
type SavedSandbox struct {
	WritableRoots       []string `json:"writableRoots" toml:"writable_roots"`
	NetworkAccess       *bool    `json:"networkAccess,omitempty" toml:"network_access"`
	ExcludeTmpdirEnvVar *bool    `json:"excludeTmpdirEnvVar,omitempty" toml:"exclude_tmpdir_env_var"`
	ExcludeSlashTmp     *bool    `json:"excludeSlashTmp,omitempty" toml:"exclude_slash_tmp"`
}

// SavedTools is what the file says about tools.
type SavedTools struct {
	WebSearch *bool `json:"webSearch,omitempty" toml:"web_search"`
	Request   *bool `json:"-" toml:"web_search_request"` // an older name of it
	ViewImage *bool `json:"viewImage,omitempty" toml:"view_image"`
}

// A SavedProfile is a profile of the file.
type SavedProfile struct {
	Model          string `json:"model,omitempty" toml:"model"`
	ModelProvider  string `json:"modelProvider,omitempty" toml:"model_provider"`
	ApprovalPolicy string `json:"approvalPolicy,omitempty" toml:"approval_policy"`
	Effort         string `json:"modelReasoningEffort,omitempty" toml:"model_reasoning_effort"`
	Summary        string `json:"modelReasoningSummary,omitempty" toml:"model_reasoning_summary"`
	Verbosity      string `json:"modelVerbosity,omitempty" toml:"model_verbosity"`
	ChatGPTBaseURL string `json:"chatgptBaseUrl,omitempty" toml:"chatgpt_base_url"`
}

// localMethods are the requests about the machine.
func (s *Server) localMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		jsonrpc.Handle("execOneOffCommand", s.runOnce),
		jsonrpc.Handle("gitDiffToRemote", s.diffToRemote),
		jsonrpc.Handle("getUserSavedConfig", s.savedConfig),
		jsonrpc.Handle("getConfigToml", s.configToml),
		jsonrpc.Handle("getAuthStatus", s.authStatus),
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
	if err := checkSandbox(in.Sandbox); err != nil {
		return OneOff{}, err
	}
	timeout := time.Duration(min(in.TimeoutMS, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	return s.o.Local.RunOnce(r.UntilEnd(ctx), in.Command, in.Cwd, timeout, in.Sandbox)
}

// checkSandbox refuses a policy that nobody knows, which must not become one that confines
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
	saved, err := s.o.Local.SavedConfig()
	if err != nil {
		return savedResult{}, requestError(err.Error())
	}
	return savedResult{saved}, nil
}

// configToml is what getUserSavedConfig was for a while.
func (s *Server) configToml(ctx context.Context, r *jsonrpc.Request, in empty) (SavedConfig, error) {
	res, err := s.savedConfig(ctx, r, in)
	return res.Config, err
}

type authParams struct {
	IncludeToken *bool `json:"includeToken,omitempty" doc:"give the key, too"`
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
	key := s.o.Local.Key()
	if key != "" {
		res.Method = "apikey"
	}
	if in.IncludeToken != nil && *in.IncludeToken {
		res.Token = key
	}
	return res, nil
}
