// Package config turns files, environment and flags into one value that no
// longer changes. Start at [Load]; [Config] is what comes out, [Config.Choose]
// picks the model provider, [Instructions] collects AGENTS.md.
//
// A value comes from the strongest place that names it: a flag, then -c
// key=value, then the profile, then the file, then the environment, then the
// default. Tables merge key by key, everything else replaces. Each value knows where it came from ([Config.Source],
// [Config.Show]). What cannot be understood is an *[Error] that names file, line,
// column and key; an unknown key is a [Warning], so that a file written
// for another version never keeps the program from starting.
//
// The one file is config.toml in the home directory. No file of a project is
// ever read as configuration, neither config.toml nor .env: keys such as notify
// and mcp_servers start programs and base_url says where an API key is sent, so a
// cloned repository must have no say in them. The only thing taken from a
// project is the text of its AGENTS.md.
//
// The package opens no connection and writes no file.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/config/programs"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/protocol"
)

// FileName is the name of the configuration file in the home directory.
const FileName = "config.toml"

// Screen is how the terminal UI behaves.
type Screen struct {
	Bell        bool   // ring when the user is waited for
	Title       bool   // show the state in the window's title
	Mouse       bool   // take the mouse; else it is the terminal's
	PrintAtQuit bool   // leave the conversation in the terminal's scrollback
	Theme       string // auto, dark, light or none

	NotifyApproval, NotifyHold, NotifyTurnEnded, NotifyRecovered bool // what Bell and Notifications are for

	Vim    bool // the keys of vim in the composer
	Inline bool // no alternate screen: what is finished goes to the terminal's scrollback
}

// A Config is everything that was configured. It is shared and must not be
// changed, nor what its fields refer to. The name of the key is beside the field
// where the two differ by more than spelling.
type Config struct {
	Home    string // the directory of the file, absolute
	File    string // what was read; empty if there is none
	Profile string // in use; empty if none

	Model             string // empty: the provider's own default
	Provider          string // empty: Choose looks around
	ContextWindow     int64  // tokens; 0 is unknown
	CompactKeepTokens int64  // of the user's messages, kept by a compaction
	MaxOutputTokens   int64  // 0: the service decides
	Effort            string // model_reasoning_effort
	Summary           string // model_reasoning_summary
	Verbosity         string

	// SupportsReasoningSummaries says so of a model that is not known to.
	SupportsReasoningSummaries bool

	Approval         protocol.ApprovalPolicy
	SandboxMode      protocol.SandboxMode
	WorkspaceWrite   WorkspaceWrite
	ShellEnvironment ShellEnvironment
	CommandTimeout   time.Duration
	StopGrace        time.Duration // between TERM and KILL
	MaxParallelCalls int           // how many calls of a turn run at the same time
	PIDNamespace     bool          // a confined command sees its own processes only
	Detach           bool          // turns are run by fermata serve, and outlive the terminal
	Snapshots        bool          // in a git repository: what commands change can be undone

	MCPServers   map[string]MCPServer
	Notify       []string // argv
	NotifyWhen   NotifyWhen
	Webhook      Webhook
	PushServices []string // hosts to which browsers may be notified, besides the known ones

	// OnLimit says what becomes of a turn at a limit of the service; empty: what suits
	// the surface.
	OnLimit protocol.OnLimit

	Store                  Store
	History                History
	DisableResponseStorage bool
	HideReasoning          bool // hide_agent_reasoning
	ShowRawReasoning       bool // show_raw_agent_reasoning

	ProjectDocMaxBytes int64             // of AGENTS.md files; 0: none is read
	Projects           map[string]string // directory to trust level, as the file spells it: see TrustLevel
	Instructions       string            // the text of model_instructions_file: replaces the built-in one
	UserInstructions   string            // instructions: goes before AGENTS.md
	Developer          string            // developer_instructions: added to the built-in instructions

	ProjectDocFallbacks []string // names that are read where there is no AGENTS.md

	// AllowedCommands are how commands begin that run unasked and outside the sandbox, by
	// directory: projects.*.allowed_commands.
	AllowedCommands map[string][]string

	ProjectMCPServers map[string]string   // MCP servers of projects that are trusted: see ProjectServer
	ProjectMCPTools   map[string][]string // tools of such servers, as server.tool, that are called unasked, by directory

	WebSearch              string // disabled, cached or live
	WebFetch               bool   // whether the tool is offered
	ViewImage              bool   // whether the tool is offered
	UseExecCommandTool     bool
	ResumeFile             string // experimental_resume
	PreferredAuth          string
	ChatGPTBaseURL         string
	Originator             string // responses_originator_header_internal_override
	FileOpener             string // whose links the terminal UI makes of file names
	Notifications          bool   // tui.notifications: the terminal says when a turn ended or an approval is asked for
	Screen                 Screen
	DisablePasteBurst      bool
	instructionsFile       string // experimental_instructions_file
	modelInstructionsFile  string // its newer name
	providers              map[string]*Provider
	settings               map[string]*setting // by canonical key
	catalogue              *catalogue.Catalogue
	providerSource         Source // of a provider that the model's name begins with
	profileGivenForThisRun bool
}

// NotifyWhen says when the program of the user is run.
type NotifyWhen struct {
	Approval, Hold, TurnEnded, Recovered bool
}

// A Webhook is where a server reports what people may want to know.
type Webhook struct {
	URL    string
	Secret Secret // signs what is sent
}

// WorkspaceWrite are the details of the sandbox mode of that name.
type WorkspaceWrite struct {
	WritableRoots       []string // absolute
	NetworkAccess       bool
	ExcludeTmpdirEnvVar bool
	ExcludeSlashTmp     bool
}

// ShellEnvironment says which environment a command gets.
type ShellEnvironment struct {
	Inherit               string // all, core or none
	IgnoreDefaultExcludes bool   // keep *KEY*, *SECRET* and *TOKEN*
	Exclude               []string
	Set                   map[string]string
	IncludeOnly           []string
	UseProfile            bool
}

// An MCPServer offers tools: a program that is started, or a service that is
// connected to.
type MCPServer struct {
	Command string
	Args    []string
	Env     map[string]Secret // variables that it gets
	EnvVars []string          // names of variables that it gets from our environment
	Cwd     string            // empty: the directory to work in

	URL               string // of a service; Command is then empty
	BearerTokenEnvVar string // the variable with the token for it
	HTTPHeaders       map[string]Secret
	EnvHTTPHeaders    map[string]string // name of a header to the variable with its value

	StartupTimeout time.Duration // 0: the default
	ToolTimeout    time.Duration // 0: the default
	Enabled        *bool         // nil: yes
	EnabledTools   []string      // nil: all
	DisabledTools  []string
	Required       bool // turns fail without it

	Project      string                 // the project whose file defines it; empty: the person's own configuration
	Approval     MCPApproval            // empty: as the hints of its tools say
	ToolApproval map[string]MCPApproval // by tool
}

// An MCPApproval says whether a tool of an MCP server may be called.
type MCPApproval string

// The answers.
const (
	MCPAllow MCPApproval = "allow"
	MCPAsk   MCPApproval = "ask"
	MCPDeny  MCPApproval = "deny"
)

// History says what is kept of what was typed.
type History struct {
	Persistence string // save-all or none
	MaxBytes    int64
}

// Options say where to look. The zero value reads the home's file with an
// empty environment.
type Options struct {
	Home      string              // empty: Home(Env)
	Cwd       string              // what relative paths of flags and -c are relative to; empty: the working directory
	Env       func(string) string // nil: empty
	Profile   string              // --profile
	Overrides []string            // -c, in the order given
	Flags     Flags
}

// Flags are the typed flags. A zero field was not given.
type Flags struct {
	Model    string // --model
	Provider string // --provider
	Approval string // --ask-for-approval
	Sandbox  string // --sandbox
	AddDirs  []string
	OSS      bool // --oss: a local model
	Demo     bool // --demo: the built-in stand-in
	FullAuto bool // --full-auto: on-failure and workspace-write
	Bypass   bool // --dangerously-bypass-approvals-and-sandbox
	Search   bool // --search
	Hold     bool // --hold: wait at a limit of the service
}

// Load reads the configuration. All errors are found before it gives up, joined
// into one; warnings are returned either way.
func Load(o Options) (*Config, []Warning, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	home, err := homeOf(o)
	if err != nil {
		return nil, nil, err
	}
	l := &loader{options: o, home: home, file: filepath.Join(home, FileName)}

	text, err := regular.ReadFile(l.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.file = ""
	case err != nil:
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	c := l.load(text)
	slices.SortStableFunc(l.warnings, func(a, b Warning) int { return a.compare(b.Problem) })
	if err := l.failure(); err != nil {
		return nil, l.warnings, err
	}
	return c, l.warnings, nil
}

// Check reports what is wrong with a text as the configuration file.
func Check(o Options, text []byte) error {
	_, err := LoadText(o, text)
	return err
}

// LoadText is Load with a text in place of the file.
func LoadText(o Options, text []byte) (*Config, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	home, err := homeOf(o)
	if err != nil {
		return nil, err
	}
	l := &loader{options: o, home: home, file: filepath.Join(home, FileName)}
	c := l.load(text)
	return c, l.failure()
}

func homeOf(o Options) (string, error) {
	if o.Home != "" {
		return filepath.Abs(o.Home)
	}
	return Home(o.Env)
}

// Source says where the value of a key came from. A key without a value has the
// default source.
func (c *Config) Source(key string) Source {
	if s, ok := c.settings[key]; ok {
		return s.source
	}
	return Source{}
}

// Providers are the names of the model providers there are, in order.
func (c *Config) Providers() []string {
	return slices.Sorted(maps.Keys(c.providers))
}

// String says no more than which configuration it is: a Config holds what
// should not get into a log.
func (c *Config) String() string {
	if c.File == "" {
		return "defaults"
	}
	return strings.TrimSpace(c.File + " " + c.Profile)
}

// GoString is String.
func (c *Config) GoString() string { return c.String() }

// SecretFiles lists the files with keys that the configuration names, and its own if there is a secret in it.
func (c *Config) SecretFiles() []string {
	var list []string
	add := func(name string) {
		if filepath.IsAbs(name) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	for _, s := range c.settings {
		switch {
		case s.key.secretFile:
			name, _ := s.value.(string)
			add(name)
		case s.holdsSecret() && s.source.Kind == FromFile:
			add(c.File)
		}
	}
	slices.Sort(list)
	return list
}

// holdsSecret reports whether the value itself is a secret: a password, a header, or an address with a password.
func (s *setting) holdsSecret() bool {
	if s.key.kind == secretKind {
		return true
	}
	text, _ := s.value.(string)
	_, rest, ok := strings.Cut(text, "://")
	return ok && strings.Contains(rest, "@")
}

// Files lists the files outside the home that were read for this configuration, or
// that it makes fermata execute. Commands must not be able to change them.
func (c *Config) Files() []string {
	var list []string
	for _, name := range []string{c.File, c.instructionsFile} {
		if filepath.IsAbs(name) {
			list = append(list, name)
		}
	}
	return append(list, programs.Of(c.Notify, "")...)
}
