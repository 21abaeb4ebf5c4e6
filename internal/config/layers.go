package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fermata-agent/fermata/protocol"
)

// addDefaults takes the defaults of the table and the built-in providers.
func (l *loader) addDefaults() {
	schema().each(func(k *key) {
		if k.def != nil {
			l.keep(&setting{key: k, path: k.path, value: k.def})
		}
	})
	for _, b := range builtins() {
		path := []string{"model_providers", b.id, b.field}
		k, names := resolve(path)
		l.keep(&setting{key: k, path: path, names: names, value: b.value})
	}
}

// addEnvironment takes the variables that stand for keys.
func (l *loader) addEnvironment() {
	oss := []string{"model_providers", "oss", "base_url"}
	if port := l.options.Env("CODEX_OSS_PORT"); port != "" && l.options.Env("CODEX_OSS_BASE_URL") == "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			l.fail(Problem{Source: Source{Kind: FromEnvironment, Name: "CODEX_OSS_PORT"}, Text: "must be a port, not " + quote(shorten(port))})
		} else {
			l.give(oss, fmt.Sprintf("http://localhost:%d/v1", n), FromEnvironment, "CODEX_OSS_PORT", rankEnvironment)
		}
	}
	for _, v := range []struct {
		name string
		path []string
	}{
		{"OPENAI_BASE_URL", []string{"model_providers", "openai", "base_url"}},
		{"CODEX_OSS_BASE_URL", oss},
		{"CODEX_INTERNAL_ORIGINATOR_OVERRIDE", []string{"responses_originator_header_internal_override"}},
	} {
		if value := l.options.Env(v.name); value != "" {
			l.give(v.path, value, FromEnvironment, v.name, rankEnvironment)
		}
	}
}

// give takes a value that is not from a tree.
func (l *loader) give(path []string, value any, kind SourceKind, name string, r rank) {
	k, names := resolve(path)
	source := Source{Kind: kind, Name: name}
	v, err := k.convert(&node{value: value}, l.resolver(l.options.Cwd))
	if err != nil {
		l.fail(Problem{Source: source, Text: err.Error()})
		return
	}
	l.keep(&setting{key: k, path: path, names: names, value: v, source: source, rank: r})
}

const fullAuto = "--full-auto"

// addFlags takes the typed flags. Those that stand for several others are
// weaker than the others themselves.
func (l *loader) addFlags() {
	f := l.options.Flags
	for _, a := range []struct {
		given bool
		flag  string
		key   string
		value any
		rank  rank
	}{
		{f.OSS, "--oss", "model_provider", "oss", rankBundle},
		{f.OSS, "--oss", "model", "", rankMode},
		{f.Demo, "--demo", "model_provider", Demo, rankBundle},
		{f.Demo, "--demo", "model", "", rankMode},
		{f.FullAuto, fullAuto, "approval_policy", string(protocol.ApprovalOnFailure), rankBundle},
		{f.FullAuto, fullAuto, "sandbox_mode", string(protocol.SandboxWorkspaceWrite), rankBundle},
		{f.Bypass, "--dangerously-bypass-approvals-and-sandbox", "approval_policy", string(protocol.ApprovalNever), rankBundle},
		{f.Bypass, "--dangerously-bypass-approvals-and-sandbox", "sandbox_mode", string(protocol.SandboxFullAccess), rankBundle},
		{f.Search, "--search", "web_search", "live", rankFlag},
		{f.Hold, "--hold", "on_limit", string(protocol.OnLimitResume), rankFlag},
		{f.Model != "", "--model", "model", f.Model, rankFlag},
		{f.Provider != "", "--provider", "model_provider", f.Provider, rankFlag},
		{f.Approval != "", "--ask-for-approval", "approval_policy", f.Approval, rankFlag},
		{f.Sandbox != "", "--sandbox", "sandbox_mode", f.Sandbox, rankFlag},
	} {
		if a.given {
			l.give([]string{a.key}, a.value, FromFlag, a.flag, a.rank)
		}
	}
	l.addDirs(f.AddDirs)
}

// addDirs adds to the writable roots, wherever those came from.
func (l *loader) addDirs(dirs []string) {
	if len(dirs) == 0 {
		return
	}
	const flag = "--add-dir"
	path := []string{"sandbox_workspace_write", "writable_roots"}
	old := l.settings[formatKey(path)]
	var all []any
	for _, d := range slices.Concat(old.value.([]string), dirs) {
		all = append(all, d)
	}
	name := flag
	if old.source.Kind != FromDefault {
		name = fmt.Sprintf("%s, on top of %s", flag, old.source)
	}
	l.give(path, all, FromFlag, name, rankFlag)
}

// shareOllama makes oss another name of ollama: what is not said of oss is
// what is said of ollama.
func (l *loader) shareOllama() {
	var shared []*setting
	for _, s := range l.settings {
		if s.path[0] != "model_providers" || s.path[1] != "ollama" {
			continue
		}
		t := *s
		t.path, t.names = slices.Clone(s.path), slices.Clone(s.names)
		t.path[1], t.names[0] = "oss", "oss"
		shared = append(shared, &t)
	}
	for _, s := range shared {
		if _, ok := l.settings[formatKey(s.path)]; !ok {
			l.settings[formatKey(s.path)] = s
		}
	}
}
