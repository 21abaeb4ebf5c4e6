package policy

import (
	"slices"
	"strings"
)

// Safe reports whether a command is known to change nothing and to run nothing
// else: one command of the list, or bash, sh or zsh with -c or -lc and a script
// of nothing but such commands joined by && || ; | and newlines. No one need be
// asked about it. Anything unknown is not safe.
//
// Commands of git are safe only as long as they are confined: see [SafeUnconfined].
func Safe(argv []string) bool { return all(argv, isSafe) }

// SafeUnconfined reports whether a command is safe also when nothing confines it.
// Git is not: even "git diff" runs programs that the configuration of a repository
// names, and which repository that is, the command may say.
func SafeUnconfined(argv []string) bool {
	return all(argv, func(name string, args []word) bool { return name != "git" && isSafe(name, args) })
}

// all reports whether a command, or each one of a script, is one that ok accepts.
func all(argv []string, ok func(name string, args []word) bool) bool {
	if len(argv) == 0 {
		return false
	}
	accept := func(words []word) bool {
		// No name has a character of a pattern in it, so that none is taken for one.
		name, standard := programName(words[0].text)
		return standard && ok(name, words[1:])
	}
	shell, script, isScript := shellScript(argv)
	if !isScript {
		return accept(fromArgv(argv))
	}
	commands, parsed := simples(shell, script, nil)
	return parsed && !slices.ContainsFunc(commands, func(c simple) bool { return !accept(c.words) })
}

func isSafe(name string, args []word) bool {
	rule, ok := safeCommands[name]
	return ok && rule(args)
}

// Where programs are that have the same trust as those found by PATH. A command
// by any other path, "./ls" above all, is another program.
var standardPlaces = []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"}

// programName returns the name of the program that argv[0] means.
func programName(arg0 string) (string, bool) {
	slash := strings.LastIndexByte(arg0, '/')
	if slash < 0 {
		return arg0, true
	}
	return arg0[slash+1:], slices.Contains(standardPlaces, arg0[:slash+1])
}

// A rule reports whether a program stays safe with these arguments.
type rule func(args []word) bool

// safeCommands is the list of safe commands: a name and what its arguments may
// be. The programs that take anything have no option that writes a file or runs
// a program, in none of their versions (GNU, BSD, busybox, built into a shell).
var safeCommands = map[string]rule{
	"cat":   anything,
	"cd":    anything,
	"echo":  anything,
	"false": anything,
	"grep":  anything,
	"head":  anything,
	"ls":    anything,
	"nl":    anything,
	"pwd":   anything,
	"tail":  anything,
	"true":  anything,
	"wc":    anything,
	"which": anything,

	"find": findRule,
	"git":  gitRule,
	"rg":   rgOptions.rule,
	"sed":  sedRule,
}

func anything([]word) bool { return true }

// sedRule takes "-n Np [FILE]" and "-n M,Np [FILE]": every other sed may write.
func sedRule(args []word) bool {
	if len(args) != 2 && len(args) != 3 || !args[0].is("-n") {
		return false
	}
	lines, ok := strings.CutSuffix(args[1].text, "p")
	from, to, two := strings.Cut(lines, ",")
	if !ok || !isNumber(from) || two && !isNumber(to) {
		return false
	}
	return len(args) == 2 || isOperand(args[2]) && args[2].text != ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isOperand reports whether an argument is none that begins with a dash,
// whatever files a pattern in it may match.
func isOperand(w word) bool {
	if w.plain() {
		return !strings.HasPrefix(w.text, "-")
	}
	return w.fixed > 0 && w.text[0] != '-'
}

// findRule takes the tests and actions that only look. The others (-exec, -ok,
// -delete, -fprint, -fls and their kin) are not in the list.
func findRule(args []word) bool {
	for _, a := range args {
		if isOperand(a) {
			continue
		}
		name, dashed := strings.CutPrefix(a.text, "-")
		if !a.plain() || !dashed || name != "" && !findWords[name] && !isNewer(name) && (name[0] < '0' || name[0] > '9') {
			return false
		}
	}
	return true
}

// isNewer reports whether a name is one of find's -newerXY.
func isNewer(name string) bool {
	xy, ok := strings.CutPrefix(name, "newer")
	return ok && len(xy) == 2 && strings.Trim(xy, "aBcmt") == ""
}

var findWords = set(`
	H L P E X O0 O1 O2 O3 d s x
	daystart depth follow ignore_readdir_race maxdepth mindepth mount noignore_readdir_race noleaf nowarn regextype warn xdev
	amin anewer atime cmin cnewer ctime empty executable false fstype gid group ilname iname inum ipath iregex iwholename
	links lname mmin mtime name newer nogroup nouser path perm readable regex samefile size true type uid used user
	wholename writable xtype
	ls print print0 printf prune quit a and not o or`)

// set makes a set of words.
func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
