package policy

import "strings"

// options are the options that a program may be given. Two traps shape them.
//
// Every argument that begins with a dash must be one of these options, also
// after "--" and where it may be the value of the option before it. Who knows
// better what is a value is the program: in "rg -e -- --pre=x" the "--" is one, and
// the rest are options after all. A harmless argument is refused now and then.
//
// A long option must be written in full. Many programs take any beginning of a
// name that is unique, and what is unique differs between versions.
type options struct {
	short string // as for getopt: a colon after those whose value follows in the same argument
	long  string // names, separated by white space; "=" after those whose value must not be the next argument
}

// findShort looks for an option of one letter.
func (o options) findShort(letter byte) (value, known bool) {
	i := strings.IndexByte(o.short, letter)
	if i < 0 || letter == ':' {
		return false, false
	}
	return strings.HasPrefix(o.short[i+1:], ":"), true
}

// findLong looks for an option by its name.
func (o options) findLong(name string) (glued, known bool) {
	for option := range strings.FieldsSeq(o.long) {
		option, glued := strings.CutSuffix(option, "=")
		if option == name {
			return glued, true
		}
	}
	return false, false
}

// rule takes any operands, and the options.
func (o options) rule(args []word) bool {
	for _, a := range args {
		if !isOperand(a) && !(a.plain() && o.has(a.text)) {
			return false
		}
	}
	return true
}

// has reports whether an argument with a dash is one of the options.
func (o options) has(arg string) bool {
	if arg == "-" || arg == "--" {
		return true
	}
	if name, ok := strings.CutPrefix(arg, "--"); ok {
		name, _, value := strings.Cut(name, "=")
		glued, known := o.findLong(name)
		return known && (value || !glued)
	}
	for i := 1; i < len(arg); i++ {
		value, known := o.findShort(arg[i])
		if !known || value {
			return known
		}
	}
	return len(arg) > 1
}

// rgOptions leaves out --pre, --hostname-bin, --search-zip and -z, which run
// programs, and all that is not known here.
var rgOptions = options{
	"A:B:C:E:M:T:d:e:f:g:j:m:r:t:FHILNPSUVabchilnopqsuvwx0.", `
	after-context auto-hybrid-regex before-context binary block-buffered byte-offset case-sensitive color colors column
	context context-separator count count-matches crlf debug dfa-size-limit encoding engine field-context-separator
	field-match-separator file files files-with-matches files-without-match fixed-strings follow glob
	glob-case-insensitive heading help hidden iglob ignore-case ignore-file ignore-file-case-insensitive include-zero
	invert-match json line-buffered line-number line-regexp max-columns max-columns-preview max-count max-depth
	max-filesize mmap multiline multiline-dotall no-binary no-column no-config no-context-separator no-crlf no-filename
	no-fixed-strings no-follow no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude no-ignore-files
	no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-line-number no-messages no-mmap no-multiline
	no-pcre2 no-require-git no-stats no-text no-trim no-unicode null null-data one-file-system only-matching passthru
	path-separator pcre2 pcre2-version pretty quiet regex-size-limit regexp replace smart-case sort sortr stats
	stop-on-nonmatch text threads trim type type-add type-clear type-list type-not unrestricted version vimgrep
	with-filename word-regexp`,
}
