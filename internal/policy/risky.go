package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A permission for the beginning of a command is given with what the command did then in mind. risky
// reports whether the words behind that beginning, from number n on, make the program do more: write a file, or
// run another program. Then the permission does not cover the command.
//
// It judges the programs that people take for harmless, and those that run others. Who has allowed "make" or
// "./build.sh" has allowed whatever these do.
func risky(words []word, n int) bool {
	name, _ := programName(words[0].text)
	if first, runs := runners[name]; runs {
		return riskyRunner(words, n, first)
	}
	rest := words[min(n, len(words)):]
	switch name {
	case "git":
		return riskyGit(words, n)
	case "find":
		return !findRule(rest)
	case "rg":
		return !rgOptions.rule(rest)
	case "sed":
		return riskySed(words, rest)
	case "uniq": // the second name is what is written
		return len(slices.DeleteFunc(slices.Clone(words[1:]), isOption)) > 1
	}
	return riskyOptions[name].match(rest)
}

func isOption(w word) bool { return w.plain() && strings.HasPrefix(w.text, "-") && w.text != "-" }

// runners run the command that their arguments name; true for those whose first operand is the program.
var runners = map[string]bool{
	"builtin": true, "command": true, "doas": true, "env": true, "exec": true, "nohup": true, "setsid": true, "sudo": true, "time": true, "xargs": true,
	"chroot": false, "flock": false, "ionice": false, "nice": false, "parallel": false, "stdbuf": false, "timeout": false, "watch": false,
}

// riskyRunner finds out whether the permission names the program that is run, and judges that. Where other words
// come before it, which one that is cannot be told: the permission must then name the whole command.
func riskyRunner(words []word, n int, first bool) bool {
	if first && n >= 2 && isOperand(words[1]) && !strings.Contains(words[1].text, "=") {
		return risky(words[1:], n-1)
	}
	return n < len(words)
}

// A riskyList is the options of a program that write or run something.
type riskyList struct {
	short string // letters, also in a bundle; with a plus sign, arguments that begin with one as well
	long  string // names; a beginning of one counts, since many programs take it for the name
	safe  string // harmless names that are the beginning of one in long
	exact string // options of one dash and several letters, which may be given with two
}

var riskyOptions = map[string]riskyList{
	"ack":       {long: "pager output"},
	"ag":        {long: "pager"},
	"bat":       {long: "pager"},
	"cargo":     {long: "config"},
	"date":      {short: "s", long: "set"},
	"dot":       {short: "oO"},
	"eslint":    {short: "o", long: "fix output-file resolve-plugins-relative-to rulesdir plugin"},
	"fd":        {short: "xX", long: "exec exec-batch"},
	"fdfind":    {short: "xX", long: "exec exec-batch"},
	"file":      {short: "C", long: "compile"},
	"gh":        {short: "XFf", long: "method field raw-field input"},
	"go":        {exact: "exec toolexec vettool o w overlay modfile"},
	"gofmt":     {exact: "w cpuprofile"},
	"iconv":     {short: "o", long: "output"},
	"kubectl":   {long: "kubeconfig"},
	"less":      {short: "oO+", long: "log-file LOG-FILE lesskey-src lesskey-content"},
	"man":       {short: "PHX", long: "pager html gxditview preprocessor"},
	"make":      {short: "E", long: "eval"},
	"pandoc":    {short: "oF", long: "output filter lua-filter extract-media pdf-engine"},
	"prettier":  {long: "write plugin config"},
	"ruff":      {short: "o", long: "fix output-file"},
	"sort":      {short: "oT", long: "output compress-program temporary-directory"},
	"tar":       {short: "IF", long: "to-command use-compress-program checkpoint-action info-script new-volume-script rsh-command rmt-command"},
	"terraform": {exact: "out state-out chdir plugin-dir"},
	"tree":      {short: "oR", long: "output"},
	"xxd":       {short: "r", exact: "revert"},
	"yq":        {short: "is", long: "inplace split-exp"},
}

// match reports whether an argument may be one of the options. A pattern that may match a file whose name
// begins with a dash may become any option.
func (l riskyList) match(args []word) bool {
	if l == (riskyList{}) {
		return false
	}
	return slices.ContainsFunc(args, func(a word) bool {
		if !a.plain() {
			return !isOperand(a)
		}
		return l.has(a.text)
	})
}

func (l riskyList) has(arg string) bool {
	if strings.HasPrefix(arg, "+") {
		return strings.Contains(l.short, "+")
	}
	dashed, ok := strings.CutPrefix(arg, "-")
	if !ok || dashed == "" {
		return false
	}
	long, isLong := strings.CutPrefix(dashed, "-")
	name, _, _ := strings.Cut(long, "=")
	if slices.Contains(strings.Fields(l.exact), name) {
		return true
	}
	if !isLong {
		return strings.ContainsAny(dashed, l.short) && l.short != ""
	}
	return name != "" && !slices.Contains(strings.Fields(l.safe), name) &&
		slices.ContainsFunc(strings.Fields(l.long), func(option string) bool { return strings.HasPrefix(option, name) })
}

// riskyGit judges the options before the subcommand, and those of the subcommand: by the list of those that are
// harmless where there is one, else by the list of those that are not.
func riskyGit(words []word, n int) bool {
	args, ok := afterGlobals(words[1:])
	if !ok || len(args) == 0 {
		return n < len(words)
	}
	if !isOperand(args[0]) { // an option that sets what is run: -c, --exec-path
		return true
	}
	at := len(words) - len(args)
	rest := words[min(max(n, at+1), len(words)):]
	if slices.ContainsFunc(rest, verifies) {
		return true
	}
	name := args[0].text
	switch safe, known := gitLooks[name]; {
	case known:
		return !safe.rule(rest)
	case name == "config":
		return !slices.ContainsFunc(args[1:], func(w word) bool { return gitConfigReads[w.text] })
	case slices.ContainsFunc(rest, func(w word) bool { return gitRuns[name+" "+w.text] }):
		return true
	}
	list := riskyGitOptions
	list.short = riskyGitShort[name]
	return list.match(rest)
}

var (
	gitLooks       = map[string]options{"diff": gitDiff, "log": gitLog, "show": gitLog, "status": gitStatus}
	gitConfigReads = set("--get --get-all --get-regexp --get-urlmatch --list -l get list")
	gitRuns        = map[string]bool{"bisect run": true, "submodule foreach": true}

	riskyGitOptions = riskyList{
		long: `output output-directory ext-diff textconv open-files-in-pager exec extcmd tool upload-pack receive-pack
			edit-description show-signature remerge-diff template config filter-spec unsafe-paths contents paginate separate-git-dir`,
		safe: "text",
	}
	riskyGitShort = map[string]string{"archive": "o", "clone": "uc", "difftool": "xt", "format-patch": "o", "grep": "O", "mergetool": "t", "rebase": "x"}
)

// riskySed takes the options that only look, and scripts of simple commands: others write (w, -i) or run (e).
func riskySed(words, rest []word) bool {
	if !sedOptions.rule(rest) {
		return true
	}
	for _, a := range words[1:] {
		if !isOption(a) {
			return !a.plain() || !sedScript().MatchString(a.text)
		}
	}
	return false
}

var (
	sedOptions = options{"nErsuz", "quiet silent regexp-extended separate unbuffered null-data posix sandbox"}
	sedScript  = sync.OnceValue(func() *regexp.Regexp {
		const address = `(?:[0-9$]+|/(?:[^/\\\n]|\\.)*/)`
		const command = `(?:[pdq=]|s/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gpiI0-9]*)`
		const one = ` *(?:` + address + `(?:,` + address + `)?)? *!? *` + command + ` *`
		return regexp.MustCompile(`^` + one + `(?:;` + one + `)*$`)
	})
)
