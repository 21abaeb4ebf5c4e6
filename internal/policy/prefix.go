package policy

import (
	"slices"
	"strings"
)

// A PrefixDecision says what becomes of a command that begins with certain words.
type PrefixDecision string

// The decisions, as files of rules name them.
const (
	PrefixAllow  PrefixDecision = "allow"     // it runs unasked, outside the sandbox
	PrefixPrompt PrefixDecision = "prompt"    // a client is asked
	PrefixForbid PrefixDecision = "forbidden" // it does not run
)

// strictness orders the decisions. Of several that fit a command the strictest counts.
var strictness = []PrefixDecision{"", PrefixAllow, PrefixPrompt, PrefixForbid}

// A PrefixRule decides about the commands that begin with certain words.
type PrefixRule struct {
	Pattern  [][]string // the words, each one of several
	Decision PrefixDecision
	Why      string // the reason that people and the model see; may be empty
}

// String returns the words, with alternatives as a|b.
func (r PrefixRule) String() string {
	var words []string
	for _, w := range r.Pattern {
		words = append(words, strings.Join(w, "|"))
	}
	return strings.Join(words, " ")
}

// NewPrefix returns the rule that allows commands that begin with these words.
func NewPrefix(words []string) PrefixRule {
	r := PrefixRule{Decision: PrefixAllow}
	for _, w := range words {
		r.Pattern = append(r.Pattern, []string{w})
	}
	return r
}

// fits reports whether the rule is about a simple command: it begins with the words of the rule and, if the rule
// allows it, has no option behind them that writes or runs something else.
func (r PrefixRule) fits(words []word) bool {
	if len(r.Pattern) == 0 || len(words) < len(r.Pattern) {
		return false
	}
	for i, alternatives := range r.Pattern {
		w := words[i]
		if !w.plain() {
			return false
		}
		name, standard := programName(w.text)
		if !slices.Contains(alternatives, w.text) && (i > 0 || !standard || !slices.Contains(alternatives, name)) {
			return false
		}
	}
	return r.Decision != PrefixAllow || !risky(words, len(r.Pattern))
}

// decidePrefix returns the rule that decides about a command, if one does. A script is allowed if each of
// its commands is, apart from those that are safe; it is forbidden if one of them is. What cannot be
// taken apart no rule decides about.
func decidePrefix(rules []PrefixRule, argv []string) (PrefixRule, bool) {
	if len(rules) == 0 {
		return PrefixRule{}, false
	}
	commands, ok := takeApart(argv)
	if !ok {
		return PrefixRule{}, false
	}
	var strictest PrefixRule
	covered := true
	for _, c := range commands {
		found := strictestFor(rules, c.words)
		if found.Decision == "" && !passable(c.words) {
			covered = false
		}
		if stricter(found, strictest) {
			strictest = found
		}
	}
	if strictest.Decision == "" || strictest.Decision == PrefixAllow && !covered {
		return PrefixRule{}, false
	}
	return strictest, true
}

func strictestFor(rules []PrefixRule, words []word) PrefixRule {
	var found PrefixRule
	for _, r := range rules {
		if r.fits(words) && stricter(r, found) {
			found = r
		}
	}
	return found
}

func stricter(a, b PrefixRule) bool {
	return slices.Index(strictness, a.Decision) > slices.Index(strictness, b.Decision)
}

// takeApart returns the simple commands that a command consists of.
func takeApart(argv []string) ([]simple, bool) {
	if len(argv) == 0 {
		return nil, false
	}
	if shell, script, ok := shellScript(argv); ok {
		return simples(shell, script, nil)
	}
	return []simple{{words: fromArgv(argv)}}, true
}

// passable reports whether a command may accompany one that is allowed: it is safe also
// outside the sandbox, and does not go to another directory than one below.
func passable(words []word) bool {
	name, standard := programName(words[0].text)
	if !standard || name == "git" || !isSafe(name, words[1:]) {
		return false
	}
	if name != "cd" {
		return true
	}
	return len(words) == 2 && words[1].plain() && isBelow(words[1].text)
}

func isBelow(dir string) bool {
	return dir != "" && !strings.ContainsAny(dir[:1], "/~-") && !slices.Contains(strings.Split(dir, "/"), "..")
}

// OfferPrefix returns the beginning of a command that a person can be offered to allow from
// now on: the program and what says which part of it is used, such as "go test" or
// "make -n". It is false where no beginning says enough: of programs that run other programs
// or delete files, and of scripts that do several things.
func OfferPrefix(argv []string) ([]string, bool) {
	commands, ok := takeApart(argv)
	if !ok {
		return nil, false
	}
	var offer []string
	for _, c := range commands {
		if passable(c.words) {
			continue
		}
		cut, ok := cutPrefix(c.words)
		ok = ok && !risky(c.words, 1) // what writes or runs something else is asked about each time
		if !ok || offer != nil && !slices.Equal(offer, cut) {
			return nil, false
		}
		offer = cut
	}
	return offer, offer != nil
}

// maxOffer is how long an offered prefix may be: it has to be read.
const maxOffer = 60

func cutPrefix(words []word) ([]string, bool) {
	name, _ := programName(words[0].text)
	n := 1
	switch depth, multi := subcommands[name]; {
	case neverOffered[name]:
		return nil, false
	case interpreters[name]: // the script is what is allowed
		if len(words) < 2 || !isOperand(words[1]) {
			return nil, false
		}
		n = 2
	case multi:
		n = 1 + depth
		if len(words) > 1 && nested[name+" "+words[1].text] {
			n++
		}
		if len(words) < n || slices.ContainsFunc(words[1:n], func(w word) bool { return !isOperand(w) }) {
			return nil, false
		}
	default:
		for n < len(words) && strings.HasPrefix(words[n].text, "-") {
			n++
		}
	}
	var out []string
	for i, w := range words[:n] {
		if !w.plain() || w.text == "" || i > 0 && (neverOffered[w.text] || interpreters[w.text]) { // uv run python
			return nil, false
		}
		out = append(out, w.text)
	}
	return out, len(strings.Join(out, " ")) <= maxOffer
}

// neverOffered are programs of which a beginning says nothing: they run what their arguments
// say, or destroy what these name.
var neverOffered = set(`
	sh bash zsh dash fish ksh csh tcsh env sudo doas su nohup nice time timeout xargs parallel watch find fd eval exec source . command builtin
	ssh scp sftp rsync nc curl wget rm rmdir shred dd mkfs mv cp ln install tee truncate chmod chown chgrp kill pkill killall shutdown reboot
	awk gawk mawk sed ed ex vi vim nvim emacs crontab at systemd-run osascript expect script screen tmux strace gdb
`)

// interpreters run the file that is named first.
var interpreters = set("python python2 python3 node deno ruby perl php lua Rscript java")

// subcommands are programs with commands of their own, and how many words name one.
var subcommands = map[string]int{
	"apt": 1, "apt-get": 1, "brew": 1, "bun": 1, "bundle": 1, "cargo": 1, "composer": 1, "conda": 1, "docker": 1, "dotnet": 1, "gem": 1,
	"gh": 2, "git": 1, "go": 1, "helm": 1, "hg": 1, "jj": 1, "kubectl": 1, "mix": 1, "npm": 1, "pip": 1, "pip3": 1, "pnpm": 1, "podman": 1,
	"poetry": 1, "rustup": 1, "svn": 1, "swift": 1, "systemctl": 1, "terraform": 1, "uv": 1, "yarn": 1, "zig": 1,
}

// nested are commands whose next word says what they do.
var nested = map[string]bool{
	"npm run": true, "pnpm run": true, "yarn run": true, "bun run": true, "go tool": true, "go mod": true, "docker compose": true,
	"podman compose": true, "uv run": true, "poetry run": true, "bundle exec": true, "npm exec": true,
	"pnpm exec": true, "go run": true, "uv pip": true, "git submodule": true, "git remote": true, "git stash": true,
}
