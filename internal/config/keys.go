package config

import (
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

// modelKeys say which model is used, and how.
// Efforts are all words for how much a model reasons. Most models know some of them only.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "default"}

func modelKeys() []key {
	return append([]key{
		text("profile", of(func(c *Config) *string { return &c.Profile })).onlyGlobal(),
		text("model", of(func(c *Config) *string { return &c.Model })),
		text("model_provider", of(func(c *Config) *string { return &c.Provider })),
		whole("model_context_window", of(func(c *Config) *int64 { return &c.ContextWindow })).within(1, unlimited),
		whole("model_max_output_tokens", of(func(c *Config) *int64 { return &c.MaxOutputTokens })).within(1, unlimited),
		text("model_reasoning_effort", of(func(c *Config) *string { return &c.Effort })).
			oneOf(Efforts...),
		text("model_reasoning_summary", of(func(c *Config) *string { return &c.Summary })).
			oneOf("auto", "concise", "detailed", "none"),
		text("model_verbosity", of(func(c *Config) *string { return &c.Verbosity })).oneOf("low", "medium", "high"),
		yesNo("model_supports_reasoning_summaries", of(func(c *Config) *bool { return &c.SupportsReasoningSummaries })).or(false).
			without("has no effect: set model_reasoning_summary to ask for summaries", false),
		openAIBaseURL(),
	}, providerKeys()...)
}

// openAIBaseURL is a shorter name for the address of one provider.
func openAIBaseURL() key {
	k := newKey("openai_base_url", urlKind)
	k.alias = func(v any) ([]string, any) { return []string{"model_providers", "openai", "base_url"}, v }
	return k
}

func providerKeys() []key {
	const at = "model_providers.*."
	keys := []key{
		text(at+"name", inProvider(func(p *Provider) *string { return &p.Name })),
		text(at+"base_url", inProvider(func(p *Provider) *string { return &p.BaseURL })).as(urlKind),
		text(at+"wire_api", inProvider(func(p *Provider) *WireAPI { return &p.WireAPI })).
			oneOf(string(WireResponses), string(WireChat), string(WireAnthropic)),
		text(at+"env_key", inProvider(func(p *Provider) *string { return &p.envKey })),
		text(at+"env_key_instructions", inProvider(func(p *Provider) *string { return &p.EnvKeyInstructions })),
		entry(at+"query_params.*", textKind, inProvider(func(p *Provider) *map[string]string { return &p.QueryParams })),
		entry(at+"http_headers.*", secretKind, inProvider(func(p *Provider) *map[string]Secret { return &p.headers })),
		entry(at+"env_http_headers.*", textKind, inProvider(func(p *Provider) *map[string]string { return &p.envHeaders })),
		whole(at+"request_max_retries", inProvider(func(p *Provider) *int { return &p.RequestMaxRetries })).cappedAt(maxRetries),
		whole(at+"stream_max_retries", inProvider(func(p *Provider) *int { return &p.StreamMaxRetries })).cappedAt(maxRetries),
		millis(at+"stream_idle_timeout_ms", inProvider(func(p *Provider) *time.Duration { return &p.StreamIdleTimeout })),
		yesNo(at+"requires_openai_auth", inProvider(func(p *Provider) *bool { return &p.RequiresOpenAIAuth })),
	}
	for i := range keys {
		keys[i].global = true
	}
	return keys
}

// commandKeys say what commands may do, and what starts programs.
func commandKeys() []key {
	workspace := func(f func(*WorkspaceWrite) *bool) place[bool] {
		return of(func(c *Config) *bool { return f(&c.WorkspaceWrite) })
	}
	shell := func(f func(*ShellEnvironment) *[]string) place[[]string] {
		return of(func(c *Config) *[]string { return f(&c.ShellEnvironment) })
	}
	return []key{
		text("approval_policy", of(func(c *Config) *protocol.ApprovalPolicy { return &c.Approval })).
			oneOf(string(protocol.ApprovalUntrusted), string(protocol.ApprovalOnFailure), string(protocol.ApprovalOnRequest), string(protocol.ApprovalNever)).
			or(string(protocol.ApprovalOnRequest)),
		text("sandbox_mode", of(func(c *Config) *protocol.SandboxMode { return &c.SandboxMode })).
			oneOf(string(protocol.SandboxReadOnly), string(protocol.SandboxWorkspaceWrite), string(protocol.SandboxFullAccess)).
			or(string(protocol.SandboxReadOnly)),
		list("sandbox_workspace_write.writable_roots", of(func(c *Config) *[]string { return &c.WorkspaceWrite.WritableRoots })).as(pathsKind).or([]string{}),
		yesNo("sandbox_workspace_write.network_access", workspace(func(w *WorkspaceWrite) *bool { return &w.NetworkAccess })).or(false),
		yesNo("sandbox_workspace_write.exclude_tmpdir_env_var", workspace(func(w *WorkspaceWrite) *bool { return &w.ExcludeTmpdirEnvVar })).or(false),
		yesNo("sandbox_workspace_write.exclude_slash_tmp", workspace(func(w *WorkspaceWrite) *bool { return &w.ExcludeSlashTmp })).or(false),
		text("shell_environment_policy.inherit", of(func(c *Config) *string { return &c.ShellEnvironment.Inherit })).oneOf("all", "core", "none").or("all"),
		yesNo("shell_environment_policy.ignore_default_excludes", of(func(c *Config) *bool { return &c.ShellEnvironment.IgnoreDefaultExcludes })).or(false),
		list("shell_environment_policy.exclude", shell(func(s *ShellEnvironment) *[]string { return &s.Exclude })).or([]string{}),
		entry("shell_environment_policy.set.*", textKind, of(func(c *Config) *map[string]string { return &c.ShellEnvironment.Set })),
		list("shell_environment_policy.include_only", shell(func(s *ShellEnvironment) *[]string { return &s.IncludeOnly })).or([]string{}),
		yesNo("shell_environment_policy.experimental_use_profile", of(func(c *Config) *bool { return &c.ShellEnvironment.UseProfile })).or(false).
			without("is not supported", false),
		millis("command_timeout_ms", of(func(c *Config) *time.Duration { return &c.CommandTimeout })).or(int64(120_000)),
		// Stopping a command takes a second at most, and half of it is for killing.
		millis("stop_grace_ms", of(func(c *Config) *time.Duration { return &c.StopGrace })).within(0, 500).or(int64(100)),
		whole("max_parallel_calls", of(func(c *Config) *int { return &c.MaxParallelCalls })).within(1, 64).or(int64(8)),
		yesNo("pid_namespace", of(func(c *Config) *bool { return &c.PIDNamespace })).or(true),
		yesNo("detach", of(func(c *Config) *bool { return &c.Detach })).or(false),
		yesNo("snapshots", of(func(c *Config) *bool { return &c.Snapshots })).or(false),
		list("notify", of(func(c *Config) *[]string { return &c.Notify })).or([]string{}),
		yesNo("notify_when.approval", of(func(c *Config) *bool { return &c.NotifyWhen.Approval })).or(true),
		yesNo("notify_when.hold", of(func(c *Config) *bool { return &c.NotifyWhen.Hold })).or(true),
		yesNo("notify_when.turn_ended", of(func(c *Config) *bool { return &c.NotifyWhen.TurnEnded })).or(true),
		yesNo("notify_when.recovered", of(func(c *Config) *bool { return &c.NotifyWhen.Recovered })).or(true),
		text("notify_webhook.url", of(func(c *Config) *string { return &c.Webhook.URL })).as(urlKind),
		list("notify_push_services", of(func(c *Config) *[]string { return &c.PushServices })).or([]string{}),
		secret("notify_webhook.secret", of(func(c *Config) *Secret { return &c.Webhook.Secret })),
	}
}

// otherKeys are the rest.
func otherKeys() []key {
	return []key{
		text("on_limit", of(func(c *Config) *protocol.OnLimit { return &c.OnLimit })).
			oneOf(string(protocol.OnLimitHold), string(protocol.OnLimitResume), string(protocol.OnLimitFail)),
		whole("compact_keep_tokens", of(func(c *Config) *int64 { return &c.CompactKeepTokens })).within(1, unlimited).or(int64(20_000)),
		text("instructions", of(func(c *Config) *string { return &c.UserInstructions })),
		text("developer_instructions", of(func(c *Config) *string { return &c.Developer })),
		text("model_instructions_file", of(func(c *Config) *string { return &c.modelInstructionsFile })).as(pathKind),
		text("experimental_instructions_file", of(func(c *Config) *string { return &c.instructionsFile })).as(pathKind),
		whole("project_doc_max_bytes", of(func(c *Config) *int64 { return &c.ProjectDocMaxBytes })).or(int64(32768)),
		list("project_doc_fallback_filenames", of(func(c *Config) *[]string { return &c.ProjectDocFallbacks })).or([]string{"CLAUDE.md"}),
		entry("projects.*.trust_level", textKind, of(func(c *Config) *map[string]string { return &c.Projects })).oneOf(Trusted, Untrusted).onlyGlobal(),
		entry("projects.*.allowed_commands", listKind, of(func(c *Config) *map[string][]string { return &c.AllowedCommands })).onlyGlobal(),
		projectServer(),
		entry("projects.*.allowed_mcp_tools", listKind, of(func(c *Config) *map[string][]string { return &c.ProjectMCPTools })).onlyGlobal(),
		text("web_search", of(func(c *Config) *string { return &c.WebSearch })).oneOf("disabled", "cached", "live").or("disabled").
			without("web search is not supported", "disabled"),
		webSearchSwitch("tools.web_search"),
		webSearchSwitch("tools.web_search_request"),
		yesNo("tools.web_fetch", of(func(c *Config) *bool { return &c.WebFetch })).or(true),
		yesNo("tools.view_image", of(func(c *Config) *bool { return &c.ViewImage })).or(true),
		text("history.persistence", of(func(c *Config) *string { return &c.History.Persistence })).oneOf("save-all", "none").or("save-all"),
		whole("history.max_bytes", of(func(c *Config) *int64 { return &c.History.MaxBytes })),
		yesNo("disable_response_storage", of(func(c *Config) *bool { return &c.DisableResponseStorage })).or(true).
			without("has no effect: services are always asked not to store responses", true),
		yesNo("hide_agent_reasoning", of(func(c *Config) *bool { return &c.HideReasoning })).or(false),
		yesNo("show_raw_agent_reasoning", of(func(c *Config) *bool { return &c.ShowRawReasoning })).or(false),
		yesNo("experimental_use_exec_command_tool", of(func(c *Config) *bool { return &c.UseExecCommandTool })).or(true),
		text("experimental_resume", of(func(c *Config) *string { return &c.ResumeFile })).as(pathKind).
			without("is not supported: use fermata resume"),
		text("preferred_auth_method", of(func(c *Config) *string { return &c.PreferredAuth })).oneOf("chatgpt", "apikey").
			without("is not supported: only API keys are", "apikey"),
		text("chatgpt_base_url", of(func(c *Config) *string { return &c.ChatGPTBaseURL })).as(urlKind).
			without("is not supported: only API keys are"),
		text("responses_originator_header_internal_override", of(func(c *Config) *string { return &c.Originator })),
		text("file_opener", of(func(c *Config) *string { return &c.FileOpener })).oneOf("vscode", "vscode-insiders", "windsurf", "cursor", "none").or("vscode"),
		yesNo("disable_paste_burst", of(func(c *Config) *bool { return &c.DisablePasteBurst })).or(false),
		yesNo("tui.notifications", of(func(c *Config) *bool { return &c.Notifications })).orList().or(false),
		yesNo("tui.bell", of(func(c *Config) *bool { return &c.Screen.Bell })).or(false),
		yesNo("tui.notify_approval", of(func(c *Config) *bool { return &c.Screen.NotifyApproval })).or(true),
		yesNo("tui.notify_hold", of(func(c *Config) *bool { return &c.Screen.NotifyHold })).or(true),
		yesNo("tui.notify_turn_ended", of(func(c *Config) *bool { return &c.Screen.NotifyTurnEnded })).or(true),
		yesNo("tui.notify_recovered", of(func(c *Config) *bool { return &c.Screen.NotifyRecovered })).or(true),
		yesNo("tui.terminal_title", of(func(c *Config) *bool { return &c.Screen.Title })).or(true),
		yesNo("tui.mouse", of(func(c *Config) *bool { return &c.Screen.Mouse })).or(true),
		yesNo("tui.print_at_quit", of(func(c *Config) *bool { return &c.Screen.PrintAtQuit })).or(true),
		yesNo("tui.vim", of(func(c *Config) *bool { return &c.Screen.Vim })).or(false),
		yesNo("tui.inline", of(func(c *Config) *bool { return &c.Screen.Inline })).or(false),
		text("tui.theme", of(func(c *Config) *string { return &c.Screen.Theme })).oneOf("auto", "dark", "light", "none").or("auto"),
	}
}

// projectServer is an MCP server of a project that is trusted.
func projectServer() key {
	k := newKey("projects.*.mcp_servers.*", textKind).onlyGlobal()
	k.put = func(c *Config, names []string, v any) {
		if c.ProjectMCPServers == nil {
			c.ProjectMCPServers = map[string]string{}
		}
		c.ProjectMCPServers[ProjectServer(names[0], names[1])] = v.(string)
	}
	return k
}

// ProjectServer is the key in Config.ProjectMCPServers of a server that a file of the project in a
// directory names. The value is a checksum of its definition.
func ProjectServer(dir, name string) string { return dir + "\x00" + name }

// webSearchSwitch is the older form of web_search.
func webSearchSwitch(path string) key {
	k := newKey(path, boolKind)
	k.alias = func(v any) ([]string, any) {
		if v.(bool) {
			return []string{"web_search"}, "live"
		}
		return []string{"web_search"}, "disabled"
	}
	return k
}
