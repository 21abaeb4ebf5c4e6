package config

import "slices"

// codexKeys are settings of Codex for things that fermata does not have, or does otherwise. A file that is used with both
// programs may have them, so they are no mistakes. A star stands for any name; a table stands for all that is in it. Settings
// that restrict something are not here: they must not seem to be in force.
var codexKeys = [][]string{
	{"analytics"},
	{"apps"},
	{"audio"},
	{"background_terminal_max_timeout"},
	{"check_for_update_on_startup"},
	{"cli_auth_credentials_store"},
	{"commit_attribution"},
	{"experimental_use_freeform_apply_patch"},
	{"experimental_use_unified_exec_tool"},
	{"features"},
	{"feedback"},
	{"ghost_snapshot"},
	{"log_dir"},
	{"marketplaces"},
	{"mcp_oauth_credentials_store"},
	{"memories"},
	{"model_catalog_json"},
	{"model_providers", "*", "supports_websockets"},
	{"model_providers", "*", "websocket_connect_timeout_ms"},
	{"notice"},
	{"otel"},
	{"personality"},
	{"service_tier"},
	{"sqlite_home"},
	{"suppress_unstable_features_warning"},
	{"tui", "alternate_screen"},
	{"tui", "animations"},
	{"tui", "keymap"},
	{"tui", "model_availability_nux"},
	{"tui", "notification_method"},
	{"tui", "show_tooltips"},
	{"tui", "status_line"},
	{"windows"},
	{"windows_wsl_setup_acknowledged"},
}

const codexText = "is a setting of Codex and has no effect here"

// isCodexKey reports whether an unknown key is one of Codex's.
func isCodexKey(path []string) bool {
	return slices.ContainsFunc(codexKeys, func(key []string) bool {
		return slices.EqualFunc(key, path, func(want, got string) bool { return want == "*" || want == got })
	})
}
