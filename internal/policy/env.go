package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An Inherit says which variables of fermata's own environment commands start from.
type Inherit string

// What commands may inherit. The empty value means all, an unknown one none.
const (
	InheritAll  Inherit = "all"
	InheritCore Inherit = "core" // what most programs need to find their way
	InheritNone Inherit = "none"
)

// An EnvPolicy says which environment the commands of the model get. Patterns
// are matched against whole names, without regard to case; * is any text and ?
// any one character. The zero value passes on everything but what looks like a
// secret.
type EnvPolicy struct {
	Inherit     Inherit
	KeepSecrets bool              // do not drop *KEY*, *SECRET* and *TOKEN*
	Exclude     []string          // patterns of names to drop
	Set         map[string]string // added, in place of what was inherited
	Never       []string          // names that are not inherited whatever the rest says: those of keys
	IncludeOnly []string          // if not empty, patterns of the only names to keep, also of those in Set
}

var (
	coreNames      = []string{"HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"}
	secretPatterns = []string{"*KEY*", "*SECRET*", "*TOKEN*"}
)

// Apply returns the environment of a command. The environ that it is given is
// left as it is. Of a name that occurs twice the last value counts, and what is
// not NAME=VALUE is dropped. The order is that of environ, then that of the
// names in Set.
func (p EnvPolicy) Apply(environ []string) []string {
	out := make([]string, 0, len(environ)+len(p.Set))
	seen := map[string]int{}
	put := func(name, value string) {
		entry := name + "=" + value
		if i, ok := seen[name]; ok {
			out[i] = entry
			return
		}
		seen[name] = len(out)
		out = append(out, entry)
	}

	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && p.inherits(name) && p.includes(name) {
			put(name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		if name != "" && p.includes(name) {
			put(name, p.Set[name])
		}
	}
	return out
}

func (p EnvPolicy) inherits(name string) bool {
	switch p.Inherit {
	case InheritAll, "":
	case InheritCore:
		if !slices.Contains(coreNames, name) {
			return false
		}
	default:
		return false
	}
	if slices.Contains(p.Never, name) {
		return false
	}
	return (p.KeepSecrets || !matchAny(secretPatterns, name)) && !matchAny(p.Exclude, name)
}

func (p EnvPolicy) includes(name string) bool {
	return len(p.IncludeOnly) == 0 || matchAny(p.IncludeOnly, name)
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(strings.ToLower(p), strings.ToLower(name)) })
}

// match reports whether a pattern with * and ? covers all of s. It goes back to
// the last * only, so that its time is bounded by the product of the lengths.
func match(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// hardened are the variables that keep git from doing more than it was asked
// to. On a terminal it would start a pager, in which whoever types can run
// commands. It takes locks only to save time for later, and fetches what a partial
// clone lacks.
var hardened = [][2]string{
	{"GIT_PAGER", "cat"},
	{"GIT_OPTIONAL_LOCKS", "0"},
	{"GIT_NO_LAZY_FETCH", "1"},
	{"GIT_ALLOW_PROTOCOL", "none"}, // for versions that do not know the one above
}

// hardenedConfig overrides the configuration of the repository. A directory in a
// clone can look like a bare repository and bring its own configuration along;
// core.fsmonitor and hooks name programs that "git status" runs, and
// log.showSignature makes "git log" run gpg. Hooks have to be switched off
// because "git diff" brings the times in the index up to date, which is all that it
// changes, whatever GIT_OPTIONAL_LOCKS says.
var hardenedConfig = [][2]string{
	{"safe.bareRepository", "explicit"},
	{"core.fsmonitor", "false"},
	{"core.hooksPath", "/dev/null"},
	{"log.showSignature", "false"},
}

// Harden returns the environment for a command that runs unasked because it is
// safe: the one given, and variables that keep git from running programs or
// fetching on the way. Settings that environ already hands to git are kept.
func Harden(environ []string) []string {
	p := EnvPolicy{KeepSecrets: true, Set: map[string]string{}}
	for _, v := range hardened {
		p.Set[v[0]] = v[1]
	}
	n := 0
	for _, entry := range environ {
		if count, ok := strings.CutPrefix(entry, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(count) // git refuses what is not a number; start afresh
		}
	}
	n = max(n, 0)
	for _, kv := range hardenedConfig {
		p.Set["GIT_CONFIG_KEY_"+strconv.Itoa(n)] = kv[0]
		p.Set["GIT_CONFIG_VALUE_"+strconv.Itoa(n)] = kv[1]
		n++
	}
	p.Set["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	return p.Apply(environ)
}
