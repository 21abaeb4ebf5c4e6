package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	p "github.com/fermata-agent/fermata/protocol"
)

// hostile steers a terminal: it erases a line, rings, does so in the one-byte
// form, and reverses what follows.
const hostile = "\x1b[2K\a\u009b2J\u202e"

// steers returns what is left of it in a text.
func steers(text string) bool { return strings.ContainsAny(text, "\x1b\a\u009b\u202e") }

// drawing are commands that draw, serve, or pass on what the user's own command prints.
var drawing = []string{"fermata", "fermata resume", "fermata mcp-server", "fermata sandbox", "fermata demo-model", "fermata app-server", "fermata serve"}

// Whatever a model, a command, a file or the command line says, no command lets
// it steer the terminal. A command that is new has to be added here.
func TestHostileTextDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	changed := pl.converse("exec", "--demo", "write made: "+hostile)
	parked := pl.converse("exec", "--demo", "--park", "-a", "untrusted", "run: touch x #"+hostile)
	damaged := pl.converse("exec", "--demo", "talk 1 "+hostile)
	for range 2 {
		pl.converse("exec", "--demo", "talk 1 twins"+hostile)
	}
	running := pl.start("exec", "--demo", "-c", execFlavour, "plan: start: sleep 600 #"+hostile+"; run: sleep 600")
	var behind string
	eventually(t, "the command goes to the background", func() bool {
		behind = string(pl.conversations()[0].ID)
		return slices.ContainsFunc(pl.events(behind), func(e p.Event) bool { _, ok := e.Body.(*p.BackgroundStarted); return ok })
	})
	sessions := hostileSessions(t)
	model := `model="` + strings.Trim(strings.ReplaceAll(hostile, "\x1b", `\u001b`), "\a\u009b") + `"`
	cases := map[string][][]string{
		"fermata exec":               {{"exec", "--demo", "run: printf '\\033]0;owned\\007' #" + hostile}, {"exec", "--color=" + hostile, "x"}},
		"fermata exec resume":        {{"exec", "resume", changed, "what happened?"}, {"exec", "resume", hostile, "x"}},
		"fermata exec fork":          {{"exec", "fork", changed, "what happened?"}, {"exec", "fork", hostile}},
		"fermata review":             {{"review", "--demo", hostile}, {"review", "--base", hostile}, {"review", "--commit=" + hostile, hostile}},
		"fermata approve":            {{"approve", parked, "--deny"}, {"approve", hostile}, {"approve", parked, hostile}},
		"fermata completion":         {{"completion", "bash"}, {"completion", hostile}},
		"fermata man":                {{"man", "exec"}, {"man", hostile}, {"man", "--dir", hostile}},
		"fermata update":             {{"update"}, {"update", hostile}},
		"fermata acp":                {{"acp", hostile}, {"acp", "-c", hostile + "=1"}},
		"fermata config":             {{"config", hostile}},
		"fermata config show":        {{"config", "show", "-c", model}, {"config", "show", "-c", hostile + "=1"}},
		"fermata doctor":             {{"doctor", "-c", model}, {"doctor", "-p", hostile}},
		"fermata list":               {{"list"}, {"list", "--json"}, {"list", hostile}},
		"fermata show":               {{"show", changed}, {"show", "--json", changed}, {"show", behind}, {"show", hostile}, {"show", "talk 1 twins" + hostile}},
		"fermata export":             {{"export", changed}, {"export", "--format", "html", changed}, {"export", "--format", "json", changed}, {"export", hostile}, {"export", changed, "-o", hostile + ".md"}, {"export", changed, "-o", hostile}},
		"fermata import":             {{"import", "codex", sessions}, {"import", "codex", sessions, "--check"}, {"import", "codex", sessions, "--all"}, {"import", "codex", sessions, "--json"}, {"import", hostile}, {"import", "codex", sessions, hostile}},
		"fermata rename":             {{"rename", damaged, "new" + hostile}, {"rename", hostile, "x"}},
		"fermata archive":            {{"archive", "new" + hostile}, {"archive", hostile}},
		"fermata unarchive":          {{"unarchive", "new" + hostile}, {"unarchive", hostile}},
		"fermata delete":             {{"delete", damaged}, {"delete", hostile}},
		"fermata undo":               {{"undo", changed}, {"undo", "--yes", changed}, {"undo", "--turn", "7", changed}, {"undo", hostile}},
		"fermata stop":               {{"stop"}, {"stop", "--all"}},
		"fermata attach":             {{"attach", hostile}},
		"fermata ps":                 {{"ps"}, {"ps", behind}, {"ps", behind, "1"}, {"ps", behind, hostile}},
		"fermata kill":               {{"kill", behind, hostile}, {"kill", behind, "1"}},
		"fermata returned":           {{"returned", changed}, {"returned", hostile}, {"returned", changed, hostile}},
		"fermata send":               {{"send", behind, hostile}, {"send", hostile, "x"}, {"send", changed, "x"}},
		"fermata interrupt":          {{"interrupt", hostile}, {"interrupt", changed}},
		"fermata fsck":               {{"fsck", damaged}, {"fsck", "--repair", damaged}, {"fsck", hostile}},
		"fermata models":             {{"models", hostile}, {"models", "--refresh", hostile}},
		"fermata login":              {{"login", hostile}},
		"fermata logout":             {{"logout", hostile}, {"logout"}},
		"fermata permissions":        {{"permissions"}, {"permissions", hostile}},
		"fermata permissions allow":  {{"permissions", "allow", "a" + hostile, "b"}, {"permissions", "allow", hostile + ";"}, {"permissions", "allow", "--tool", hostile}},
		"fermata permissions revoke": {{"permissions", "revoke", "a" + hostile}, {"permissions", "revoke", "--tool", "a." + hostile}},
		"fermata fleet":              {{"fleet", hostile}, {"fleet"}},
		"fermata fleet status":       {{"fleet", "status"}, {"fleet", "status", hostile}},
		"fermata fleet nodes":        {{"fleet", "nodes"}, {"fleet", "nodes", hostile}},
		"fermata fleet queue":        {{"fleet", "queue"}, {"fleet", "queue", hostile}},
		"fermata fleet top":          {{"fleet", "top"}, {"fleet", "top", hostile}},
		"fermata fleet drain":        {{"fleet", "drain", hostile}, {"fleet", "drain"}},
		"fermata fleet retry":        {{"fleet", "retry", hostile}, {"fleet", "retry", "1"}},
		"fermata fleet drop":         {{"fleet", "drop", hostile}, {"fleet", "drop", "1"}},
		"fermata store":              {{"store", hostile}, {"store"}},
		"fermata store set":          {{"store", "set", hostile}, {"store", "set"}},
		"fermata store copy":         {{"store", "copy", hostile}, {"store", "copy"}},
		"fermata trust":              {{"trust"}, {"trust", hostile}},
		"fermata version":            {{"version"}, {"version", hostile}},

		"fermata app-server generate-json-schema": {{"app-server", "generate-json-schema"}, {"app-server", "generate-json-schema", hostile}},
		"fermata web": {{"web", "--no-open", hostile}, {"web", "--revoke", hostile}},
	}
	pl.runHostile(cases)
	running.code() // it was stopped
}

// runHostile runs every command with its cases, and checks that each has some.
func (pl *place) runHostile(cases map[string][][]string) {
	pl.t.Helper()
	maps.Copy(cases, hostileServers())
	eachCommand(newRoot(cli.Stdio()), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if len(cases[path]) == 0 && !slices.Contains(drawing, path) {
			pl.t.Errorf("%s has no case here", path)
		}
		for _, args := range cases[path] {
			out := pl.onScreen(args...)
			if steers(out) {
				pl.t.Errorf("%q steers the terminal:\n%q", args, out)
			}
			if out == "" {
				pl.t.Errorf("%q printed nothing", args)
			}
		}
		delete(cases, path)
	})
	for path := range cases {
		pl.t.Errorf("there is no command %s", path)
	}
}

// hostileSessions makes a home of another agent whose names and texts want to steer the terminal.
func hostileSessions(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "sessions")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(hostile)
	lines := fmt.Sprintf(`{"type":"session_meta","payload":{"id":%s,"cwd":%s,"cli_version":%s}}`+"\n"+
		`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}}`+"\n"+
		`{"type":"response_item","payload":{"type":"function_call","name":%s,"arguments":"{}","call_id":%s}}`+"\n"+`{"torn`, text, text, text, text, text, text)
	if err := os.WriteFile(filepath.Join(dir, "rollout-2026-11-01T10-00-00-x.jsonl"), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(dir)
}

// converse runs the binary and returns the conversation that it began.
func (pl *place) converse(args ...string) string {
	pl.t.Helper()
	pl.run(args...)
	return string(pl.conversations()[0].ID)
}

// hostileServers are the cases of fermata mcp.
func hostileServers() map[string][][]string {
	return map[string][][]string{
		"fermata mcp":               {{"mcp", hostile}},
		"fermata mcp add":           {{"mcp", "add", "h", "--", "sh", "-c", "printf '" + hostile + "' >&2; exit 1"}, {"mcp", "add", hostile}},
		"fermata mcp get":           {{"mcp", "get", "h"}, {"mcp", "get", hostile}},
		"fermata mcp list":          {{"mcp", "list"}, {"mcp", "list", "--json"}},
		"fermata mcp remove":        {{"mcp", "remove", hostile}},
		"fermata mcp trust":         {{"mcp", "trust"}, {"mcp", "trust", hostile}},
		"fermata mcp login":         {{"mcp", "login", hostile}, {"mcp", "login", "h"}},
		"fermata mcp logout":        {{"mcp", "logout", hostile}, {"mcp", "logout", "h"}},
		"fermata mcp test":          {{"mcp", "test"}, {"mcp", "test", hostile}},
		"fermata mcp-server schema": {{"mcp-server", "schema"}},
	}
}
