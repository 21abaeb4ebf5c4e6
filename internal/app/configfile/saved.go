package configfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A Saved is what the configuration file says, as far as clients know it. The
// file's names are beside theirs.
type Saved struct {
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

// ReadSaved reads what the configuration file of a home directory says now.
func ReadSaved(home string) (Saved, error) {
	saved := Saved{Profiles: map[string]SavedProfile{}}
	file := filepath.Join(home, config.FileName)
	text, err := regular.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return saved, fmt.Errorf("read the configuration: %w", err)
	}
	if err := toml.Unmarshal(text, &saved); err != nil {
		return saved, fmt.Errorf("read %s: %w", file, err)
	}
	if s := saved.SandboxSettings; s != nil && s.WritableRoots == nil {
		s.WritableRoots = []string{}
	}
	if t := saved.Tools; t != nil && t.WebSearch == nil {
		t.WebSearch = t.Request
	}
	return saved, nil
}
