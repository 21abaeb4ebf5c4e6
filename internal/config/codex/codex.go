// Package codex knows the settings of Codex that fermata has no use for. It is a list
// of names, apart from the settings that do something.
package codex

import (
	"slices"
	"strings"
)

// Keys are settings of Codex for things that fermata does not have, or does otherwise. A file that is used with both
// programs may have them, so they are no mistakes. A star stands for any name, a table for all that is in it. Settings
// that restrict something are not here: they must not seem to be in force.
var Keys = strings.Fields(`
	analytics apps audio background_terminal_max_timeout check_for_update_on_startup cli_auth_credentials_store
	commit_attribution experimental_use_freeform_apply_patch experimental_use_unified_exec_tool features feedback
	ghost_snapshot log_dir marketplaces mcp_oauth_credentials_store memories model_catalog_json
	model_providers.*.supports_websockets model_providers.*.websocket_connect_timeout_ms notice otel personality
	service_tier sqlite_home suppress_unstable_features_warning tui.alternate_screen tui.animations tui.keymap
	tui.model_availability_nux tui.notification_method tui.show_tooltips tui.status_line windows
	windows_wsl_setup_acknowledged`)

// Text says of such a key what becomes of it.
const Text = "is a setting of Codex and has no effect here"

// Has reports whether a key that fermata does not know is one of Codex's.
func Has(path []string) bool {
	return slices.ContainsFunc(Keys, func(key string) bool {
		return slices.EqualFunc(strings.Split(key, "."), path, func(want, got string) bool { return want == "*" || want == got })
	})
}
