package policy

import (
	"slices"
	"strings"
)

// gitRule takes the subcommands that look, with options that keep them so.
func gitRule(args []word) bool {
	args, ok := afterGlobals(args)
	if !ok || len(args) == 0 {
		return false
	}
	rule, ok := gitCommands[args[0].text]
	return ok && rule(args[1:]) && !slices.ContainsFunc(args, verifies)
}

// afterGlobals passes over the options before the subcommand that change nothing
// but the directory and the looks. Others do: -c and --config-env set what
// programs are run, --git-dir and --exec-path whose, -p starts a pager.
func afterGlobals(args []word) ([]word, bool) {
	for len(args) > 0 {
		switch args[0].text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects":
			args = args[1:]
		case "-C":
			// A pattern could become several words, the second of them the subcommand.
			if len(args) < 2 || !args[1].plain() || !isOperand(args[1]) {
				return nil, false
			}
			args = args[2:]
		default:
			return args, true
		}
	}
	return args, true
}

// verifies reports whether an argument may be a format that makes git check a
// signature, for which it runs the program that the configuration names.
func verifies(w word) bool {
	return strings.Contains(w.text, "%G") || strings.Contains(w.text, "%") && strings.Contains(w.text, "signature")
}

var gitCommands = map[string]rule{
	"branch": gitBranch,
	"diff":   gitDiff.rule,
	"log":    gitLog.rule,
	"show":   gitLog.rule,
	"status": gitStatus.rule,
}

// Left out on purpose: --output writes a file; --ext-diff and --textconv run
// what the configuration names; --show-signature runs gpg; --remerge-diff writes
// objects; --submodule runs git in places that were not looked at; --help starts a viewer;
// --stdin reads more arguments from where they cannot be seen.
const diffLong = `
	abbrev binary break-rewrites cached check color color-moved color-moved-ws color-words compact-summary cumulative
	diff-algorithm diff-filter dirstat dirstat-by-file dst-prefix exit-code find-copies find-copies-harder find-object
	find-renames full-index function-context histogram ignore-all-space ignore-blank-lines ignore-cr-at-eol
	ignore-matching-lines ignore-space-at-eol ignore-space-change indent-heuristic inter-hunk-context irreversible-delete
	line-prefix merge-base minimal name-only name-status no-abbrev no-color no-color-moved no-ext-diff
	no-indent-heuristic no-index no-patch no-prefix no-relative no-rename-empty no-renames no-textconv numstat patch
	patch-with-raw patch-with-stat patience pickaxe-all pickaxe-regex quiet raw relative rename-empty shortstat
	src-prefix staged stat summary text unified word-diff word-diff-regex ws-error-highlight`

const logLong = `
	abbrev-commit after all all-match ancestry-path author author-date-order basic-regexp before boundary branches
	cc cherry cherry-mark cherry-pick children clear-decorations combined-all-paths committer date date-order decorate
	decorate-refs decorate-refs-exclude dense diff-merges encoding exclude extended-regexp first-parent fixed-strings
	follow format full-diff full-history glob graph grep invert-grep left-only left-right log-size mailmap max-count
	max-parents merge merges min-parents no-abbrev-commit no-decorate no-diff-merges no-expand-tabs no-graph no-mailmap
	no-max-parents no-merges no-min-parents no-notes no-walk not notes oneline parents perl-regexp pretty reflog
	regexp-ignore-case relative-date remotes remove-empty reverse right-only show-pulls simplify-by-decoration
	simplify-merges since since-as-filter skip source sparse tags topo-order until use-mailmap walk-reflogs`

var (
	gitDiff   = options{"0123456789B:C:DG:I:M:RS:U:Wabl:pqrsuwz", diffLong}
	gitLog    = options{"0123456789B:C:DEFG:I:L:M:PRS:U:Wabcgil:mn:pqrstuwz", diffLong + logLong}
	gitStatus = options{"bsu:vz", `
		ahead-behind branch column find-renames ignore-submodules ignored long no-ahead-behind no-column no-renames
		porcelain renames short show-stash untracked-files verbose`}

	// Values only after "=": in "git branch --sort --list x" the --list is how to
	// sort, and x a new branch.
	gitBranches = options{"ailqrv", `
		abbrev all color column contains format= ignore-case list merged no-abbrev no-color no-column no-contains
		no-merged points-at= quiet remotes show-current sort= verbose`}

	// With one of these, names are what to list and not what to make. The short
	// form -l has meant something else.
	branchLists = set("--list --contains --no-contains --merged --no-merged --points-at")
)

// gitBranch takes what lists branches: no names, or an option that says that
// they are to be listed. Behind "--" that would be a name like any other.
func gitBranch(args []word) bool {
	if !gitBranches.rule(args) || slices.ContainsFunc(args, func(a word) bool { return a.is("--") }) {
		return false
	}
	if !slices.ContainsFunc(args, isOperand) {
		return true
	}
	return slices.ContainsFunc(args, func(a word) bool {
		name, _, _ := strings.Cut(a.text, "=")
		return a.plain() && branchLists[name]
	})
}
