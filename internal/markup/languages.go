package markup

import (
	"strings"
	"sync"
)

// A language is what the highlighter has to know of one.
type language struct {
	words    string
	known    map[string]bool // the words
	comments []string        // that go to the end of the line
	long     []long
	quotes   string // around strings that end on their line
	chars    bool   // 'x' is one character, and a lone ' something else
	shell    bool   // no escapes between '
	keys     bool   // "name:" and "name =" begin a line
	anyCase  bool
	diff     bool
}

// long is what goes on over lines.
type long struct {
	open, close string
	class       Class
}

var (
	blockComment = long{"/*", "*/", Comment}
	backtick     = long{"`", "`", String}
)

// languages are the languages by name, ready for use. That is made when it is
// first needed, not when the program starts.
var languages = sync.OnceValue(func() map[string]*language {
	byName := map[string]*language{}
	for names, l := range languageTable {
		l.known = map[string]bool{}
		for _, w := range strings.Fields(l.words) {
			l.known[w] = true
		}
		for _, n := range strings.Fields(names) {
			byName[n] = l
		}
	}
	return byName
})

var languageTable = map[string]*language{
	"go golang": {
		words: `break case chan const continue default defer else fallthrough for func go goto if import interface map package range
			return select struct switch type var true false nil iota any bool byte error float32 float64 int int8 int16 int32 int64 rune
			string uint uint8 uint16 uint32 uint64 uintptr append cap close copy delete len make max min new panic recover`,
		comments: []string{"//"}, long: []long{blockComment, backtick}, quotes: `"'`, chars: true,
	},
	"python py python3 starlark": {
		words: `and as assert async await break class continue def del elif else except finally for from global if import in is lambda
			nonlocal not or pass raise return try while with yield match case True False None self`,
		comments: []string{"#"}, long: []long{{`"""`, `"""`, String}, {"'''", "'''", String}}, quotes: `"'`,
	},
	"js javascript jsx ts typescript tsx mjs": {
		words: `async await break case catch class const continue debugger default delete do else enum export extends finally for from
			function get if implements import in instanceof interface let new of private protected public readonly return set static super
			switch this throw try type typeof var void while with yield true false null undefined as any boolean number string never unknown`,
		comments: []string{"//"}, long: []long{blockComment, backtick}, quotes: `"'`,
	},
	"rust rs": {
		words: `as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub
			ref return self Self static struct super trait true type unsafe use where while i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128
			usize f32 f64 bool char str String Vec Option Result Some None Ok Err Box`,
		comments: []string{"//"}, long: []long{blockComment}, quotes: `"'`, chars: true,
	},
	"c h cpp c++ cc hpp java cs csharp c# kotlin kt swift php dart scala zig proto objc": {
		words: `auto abstract bool boolean break byte case catch char class const constexpr continue default delete do double else enum
			extends extern final finally float fn for fun func if implements import include inline int interface internal let long namespace
			new null nullptr nil object operator override package private protected public register return short signed sizeof static struct
			super switch template this throw throws true false try typedef typename union unsigned using val var virtual void volatile when
			while string self guard`,
		comments: []string{"//"}, long: []long{blockComment}, quotes: `"'`, chars: true,
	},
	"sh bash shell zsh fish console shellsession shell-session dockerfile docker make makefile": {
		words: `if then else elif fi for in do done while until case esac function return break continue exit export local readonly
			set unset shift source alias cd echo eval exec trap true false test FROM RUN COPY ENV CMD WORKDIR ENTRYPOINT`,
		comments: []string{"#"}, quotes: `"'`, shell: true,
	},
	"json jsonc json5 jsonl": {
		words: "true false null", comments: []string{"//"}, long: []long{blockComment}, quotes: `"`, keys: true,
	},
	"yaml yml toml ini properties env": {
		words: "true false null yes no on off", comments: []string{"#"}, quotes: `"'`, shell: true, keys: true,
	},
	"sql sqlite postgres postgresql mysql": {
		words: `select from where and or not in is null insert into values update set delete create table index view drop alter add
			join left right inner outer on group by order having limit offset union all distinct as primary key foreign references default
			unique begin commit rollback case when then else end exists between like integer text varchar boolean`,
		comments: []string{"--"}, long: []long{blockComment}, quotes: `'"`, anyCase: true,
	},
	"ruby rb": {
		words: `alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry
			return self super then true undef unless until when while yield require attr_accessor`,
		comments: []string{"#"}, quotes: `"'`,
	},
	"lua": {
		words: `and break do else elseif end false for function goto if in local nil not or repeat return then true until while`,
		long:  []long{{"--[[", "]]", Comment}, {"[[", "]]", String}}, comments: []string{"--"}, quotes: `"'`,
	},
	"diff patch": {diff: true},
}
