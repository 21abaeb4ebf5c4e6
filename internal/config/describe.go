package config

import (
	"fmt"
	"strings"
)

// descriptions say what each key is for, in one sentence. A test checks that none is missing.
var descriptions = map[string]string{
	"profile":                            "The profile to use: a table `[profiles.NAME]` with some of these keys.",
	"model":                              "The model. A provider before a slash chooses it as well: `anthropic/claude-sonnet-4-5`.",
	"model_provider":                     "The provider: a built-in one, or one of `model_providers`.",
	"model_context_window":               "Tokens that the model can take, if that is not known.",
	"model_max_output_tokens":            "Tokens that one response may have.",
	"model_reasoning_effort":             "How much the model thinks.",
	"model_reasoning_summary":            "Whether to ask for summaries of what the model thinks, and how long they are.",
	"model_verbosity":                    "How much the model writes.",
	"model_supports_reasoning_summaries": "Accepted for files written for Codex.",
	"openai_base_url":                    "Short for `model_providers.openai.base_url`.",

	"model_providers.*.name":                   "What people call the provider.",
	"model_providers.*.base_url":               "Its address.",
	"model_providers.*.wire_api":               "What it speaks.",
	"model_providers.*.env_key":                "The environment variable that holds its API key.",
	"model_providers.*.env_key_instructions":   "How to get a key, for the error message.",
	"model_providers.*.query_params.*":         "Added to the address of each request.",
	"model_providers.*.http_headers.*":         "A header of each request.",
	"model_providers.*.env_http_headers.*":     "A header whose value is in this environment variable.",
	"model_providers.*.request_max_retries":    "How often a request that failed is made again.",
	"model_providers.*.stream_max_retries":     "How often a response that broke off is requested again.",
	"model_providers.*.stream_idle_timeout_ms": "How long the service may be silent.",
	"model_providers.*.requires_openai_auth":   "Use the key of OpenAI.",

	"approval_policy":                                   "When to ask before a command runs. `fermata exec` without a terminal never asks: there this counts only with `--park`, or if `-a`, `-c` or `-p` of the run says it.",
	"sandbox_mode":                                      "What commands may touch.",
	"sandbox_workspace_write.writable_roots":            "Directories that commands may write to as well.",
	"sandbox_workspace_write.network_access":            "Whether commands may use the network.",
	"sandbox_workspace_write.exclude_tmpdir_env_var":    "Do not let commands write to `$TMPDIR`.",
	"sandbox_workspace_write.exclude_slash_tmp":         "Do not let commands write to `/tmp`.",
	"shell_environment_policy.inherit":                  "Which variables commands inherit.",
	"shell_environment_policy.ignore_default_excludes":  "Keep variables whose names look like secrets (`*KEY*`, `*SECRET*`, `*TOKEN*`).",
	"shell_environment_policy.exclude":                  "Patterns of variables that commands do not get.",
	"shell_environment_policy.set.*":                    "A variable that commands get.",
	"shell_environment_policy.include_only":             "If set: patterns of the only variables that commands get.",
	"shell_environment_policy.experimental_use_profile": "Accepted for files written for Codex.",

	"command_timeout_ms": "How long a call of `shell` may run unless the model asks for another time.",
	"stop_grace_ms":      "Time between SIGTERM and SIGKILL when a command is stopped.",
	"max_parallel_calls": "How many calls of one response run at the same time, where they do not disturb each other. With 1 they run one at a time and in order.",
	"pid_namespace":      "Let commands in a sandbox see their own processes only, where the system can do that.",
	"detach":             "Turns are run by `fermata serve`, which is started on demand, and outlive the terminal that started them.",
	"snapshots":          "In a git repository: record what commands change, so that undo can restore it.",

	"mcp_servers.*.command":              "The program of an MCP server, which offers the model tools.",
	"mcp_servers.*.args":                 "Its arguments.",
	"mcp_servers.*.env.*":                "A variable of its environment. It gets few others: PATH, HOME and the like.",
	"mcp_servers.*.env_vars":             "Names of variables that it gets from fermata's environment.",
	"mcp_servers.*.cwd":                  "The directory it is started in; unless set, the one to work in.",
	"mcp_servers.*.url":                  "The address of an MCP server that is connected to over HTTP, in place of `command`.",
	"mcp_servers.*.bearer_token_env_var": "The variable with the token for it.",
	"mcp_servers.*.http_headers.*":       "A header of the requests to it.",
	"mcp_servers.*.env_http_headers.*":   "A header of the requests to it: the variable with its value.",
	"mcp_servers.*.startup_timeout_sec":  "How long it may take to start and to list its tools; 10 seconds unless set.",
	"mcp_servers.*.startup_timeout_ms":   "The same, in milliseconds.",
	"mcp_servers.*.tool_timeout_sec":     "How long a call may take; 60 seconds unless set.",
	"mcp_servers.*.enabled":              "With false it is not used.",
	"mcp_servers.*.enabled_tools":        "The only tools of it that are offered.",
	"mcp_servers.*.disabled_tools":       "Tools of it that are not offered.",
	"mcp_servers.*.required":             "With true a turn fails if it cannot be started; otherwise there is a warning.",
	"mcp_servers.*.approval":             "Whether its tools may be called. Unless set, tools that it describes as read-only may, and others ask.",
	"mcp_servers.*.tools.*.approval":     "The same for one tool.",

	"store.commands_may_connect": "Let confined commands with network access connect to the NATS servers, where they could act as a member of the fleet.",

	"store.url":           "Addresses of NATS servers with JetStream, separated by commas: conversations are kept there instead of in files, and any machine can resume them. See fleet.md.",
	"store.stream":        "Name of the stream, and the first word of all its subjects. It is made if it does not exist.",
	"store.user":          "User of the NATS servers.",
	"store.password":      "Password of the user. The environment variable FERMATA_STORE_PASSWORD is used if it is not set.",
	"store.token":         "Token for the NATS servers. The environment variable FERMATA_STORE_TOKEN is used if it is not set.",
	"store.nkey":          "File with the seed of an nkey.",
	"store.creds":         "File with a JWT and the seed of its nkey, as nsc writes it.",
	"store.ca":            "File with the certificates to trust; use tls:// in the addresses.",
	"store.cert":          "File with the certificate of this client, for servers that demand one.",
	"store.key":           "File with the key of that certificate.",
	"store.domain":        "Domain of JetStream, for leaf nodes.",
	"store.replicas":      "How many servers keep each message, when the stream is made: 3 survive the loss of one.",
	"store.max_bytes":     "How large the stream may become before turns are refused, when it is made (later: fermata store set); 0 is no limit. A full stream forgets nothing.",
	"store.memory":        "Keep everything in the memory of the servers, when the stream is made.",
	"store.lease_ms":      "After how long without a sign of life others may take the conversations of a process over, when the stream is made (later: fermata store set).",
	"compact_keep_tokens": "Tokens of your own messages that a compaction keeps word for word, the newest first; the first message is always kept.",
	"on_limit": "What becomes of a turn when a limit of the model service is reached: it waits until a user acts, until the limit is lifted, or fails. " +
		"Unless set: hold in the terminal, fail in exec (see --hold) and for clients of servers. " +
		"A turn that waits until the limit is lifted continues then if a process has its conversation open, else as soon as one opens it.",
	"notify_webhook.url":    "An address to which `fermata web` and `fermata serve --http` post what you may want to know: an approval is asked, a turn is held at a limit or has ended, a crash was recovered.",
	"notify_push_services":  "Hosts that a browser may name as its push service, besides those of Chrome, Firefox, Edge and Safari; `.example.com` allows all below.",
	"notify_webhook.secret": "The key that signs these posts, as Standard Webhooks do.",

	"notify": "A program to run when a turn has ended or waits; it gets one more argument, a JSON object. `notify_when.…` say when.",

	"notify_when.approval":   "Run it when an approval is needed, or an MCP server asks something.",
	"notify_when.hold":       "Run it when a turn waits for a limit of the model service.",
	"notify_when.turn_ended": "Run it when a turn has ended.",
	"notify_when.recovered":  "Run it when a turn that a crash interrupted has been ended.",

	"instructions":                   "Instructions of yours for the model; they go before those of AGENTS.md.",
	"developer_instructions":         "Instructions that are added to the built-in ones.",
	"model_instructions_file":        "A file whose text replaces the built-in instructions.",
	"experimental_instructions_file": "The older name of `model_instructions_file`.",
	"project_doc_fallback_filenames": "Names of files that are read in a directory that has no AGENTS.md; the first that exists counts.",
	"project_doc_max_bytes":          "How much is read of AGENTS.md files; 0 reads none.",
	"projects.*.trust_level":         "Whether you trust a directory, and what is in it. In a trusted one `sandbox_mode` is workspace-write unless it is set, and `exec` runs also without a git repository.",
	"projects.*.mcp_servers.*":       "An MCP server of the project that you trust: a checksum of its definition, written by `fermata mcp trust`.",
	"projects.*.allowed_mcp_tools":   "Tools of such servers that are called without asking, each as `SERVER.TOOL`.",
	"projects.*.allowed_commands":    "How commands begin that run in this directory, and below, without asking and outside the sandbox, such as \"go test\". Options behind it that write a file or run another program (`git log --output`, `sort -o`, `find -exec`) are asked about all the same.",
	"web_search":                     "Whether the model may search the web.",
	"tools.web_search":               "The older form of `web_search`.",
	"tools.web_search_request":       "The older form of `web_search`.",
	"tools.web_fetch":                "Offer the model a tool to read web pages, where commands have a network or you can be asked.",
	"tools.view_image":               "Offer the model a tool to look at images.",
	"history.persistence":            "Whether what you type in the terminal is kept for the next time.",
	"history.max_bytes":              "How long that file may grow; 8 MiB unless set.",
	"disable_response_storage":       "Ask services not to store responses. fermata always does.",
	"hide_agent_reasoning":           "Do not show what the model thinks.",
	"show_raw_agent_reasoning":       "Show the reasoning itself rather than its summary, if the service sends both.",

	"experimental_use_exec_command_tool":            "Offer the model `exec_command` and `write_stdin` (commands that continue in the background); with false, `shell`.",
	"experimental_resume":                           "Accepted for files written for Codex.",
	"preferred_auth_method":                         "Accepted for files written for Codex.",
	"chatgpt_base_url":                              "Accepted for files written for Codex.",
	"responses_originator_header_internal_override": "How requests name the program that makes them.",
	"file_opener":                                   "The editor that file names in the terminal are links to.",
	"disable_paste_burst":                           "In terminals without bracketed paste: do not guess which keys were pasted.",
	"tui.bell":                                      "Ring the bell; `tui.notify_…` say when.",
	"tui.notify_approval":                           "Ring and notify when an approval is needed, or an MCP server asks something.",
	"tui.notify_hold":                               "Ring and notify when a turn waits for a limit of the model service.",
	"tui.notify_turn_ended":                         "Ring and notify when a turn has ended.",
	"tui.notify_recovered":                          "Ring and notify when a conversation was recovered after a crash.",
	"tui.terminal_title":                            "Show in the title of the window whether the terminal UI works, waits for you or is done.",
	"tui.mouse":                                     "Let the mouse scroll, and copy what is selected with it. Without it the mouse is the terminal's.",
	"tui.print_at_quit":                             "Leave the conversation in the terminal's scrollback when the terminal UI ends.",
	"tui.vim":                                       "Use the keys of vim where you write. Esc goes to normal mode; with nothing written it interrupts, as always.",
	"tui.inline":                                    "Use no alternate screen: what is finished goes to the terminal's own scrollback, and the mouse is the terminal's.",
	"tui.theme":                                     "Colours for a dark or a light background, or none. `auto` asks the terminal.",
	"tui.notifications":                             "Let the terminal notify you while you look elsewhere; `tui.notify_…` say of what.",
}

// Markdown is a table of all keys.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| key | values | default | meaning |\n|---|---|---|---|\n")
	schema().each(func(k *key) {
		def := ""
		if k.def != nil {
			def = "`" + formatValue(k.def) + "`"
		}
		text := descriptions[k.name()]
		switch {
		case k.warning != "" && len(k.fine) > 0:
			text += fmt.Sprintf(" **Not supported** unless `%s`: gives a warning.", formatValue(k.fine[0]))
		case k.warning != "":
			text += " **Not supported**: gives a warning."
		}
		if k.global {
			text += " Not in a profile."
		}
		name := strings.ReplaceAll(k.name(), "*", "NAME")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, k.values(), def, text)
	})
	return b.String()
}

// values says what a key takes, shortly.
func (k *key) values() string {
	switch k.kind {
	case boolKind:
		return "true, false"
	case wholeKind:
		if k.max == unlimited {
			return "number"
		}
		return fmt.Sprintf("%d to %d", k.min, k.max)
	case listKind:
		return "list of strings"
	case pathsKind:
		return "list of directories"
	case pathKind:
		return "file"
	case urlKind:
		return "address"
	case enumKind:
		return strings.Join(k.allowed, ", ")
	}
	return "string"
}
