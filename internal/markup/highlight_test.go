package markup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var classNames = map[Class]string{
	Keyword: "K", String: "S", Comment: "C", Number: "N", Added: "+", Removed: "-",
}

// marked writes the class of each token before it, such as K‹func›.
func marked(lang string, lines ...string) string {
	h := NewHighlighter(lang)
	var b strings.Builder
	for _, line := range lines {
		for _, t := range h.Line(line) {
			if t.Class == Plain {
				b.WriteString(t.Text)
				continue
			}
			fmt.Fprintf(&b, "%s‹%s›", classNames[t.Class], t.Text)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestHighlight(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"go", marked("go", `func f() { return "a\"b" + 'x', 0x1f } // end`), `K‹func› f() { K‹return› S‹"a\"b"› + S‹'x'›, N‹0x1f› } C‹// end›`},
		{"go raw string", marked("go", "a := `x", "func` + b"), "a := S‹`x›\nS‹func`› + b"},
		{"comment over lines", marked("c", "int a; /* x", "int */ int b;"), "K‹int› a; C‹/* x›\nC‹int */› K‹int› b;"},
		{"comment on one line", marked("c", "/* x */ a"), "C‹/* x */› a"},
		{"python", marked("python title=x", `def f(): # no`, `    """a`, `b""" + 'c'`), "K‹def› f(): C‹# no›\n    S‹\"\"\"a›\nS‹b\"\"\"› + S‹'c'›"},
		{"empty long string", marked("py", `"""""" + 1`), `S‹""""""› + N‹1›`},
		{"ts", marked("ts", "const x = `a${b}`"), "K‹const› x = S‹`a${b}`›"},
		{"rust lifetime", marked("rust", `fn f<'a>(x: &'a str) { '\n' }`), `K‹fn› f<'a>(x: &'a K‹str›) { S‹'\n'› }`},
		{"shell", marked("sh", `if [ "$a" ]; then echo 'x\' # c`, `a#b`), "K‹if› [ S‹\"$a\"› ]; K‹then› K‹echo› S‹'x\\'› C‹# c›\na#b"},
		{"json", marked("json", `{"a": "b", "c": [1, true]}`), `{K‹"a"›: S‹"b"›, K‹"c"›: [N‹1›, K‹true›]}`},
		{"yaml", marked("yaml", `- a-b: "c" # d`, `url: http://x`), "- K‹a-b›: S‹\"c\"› C‹# d›\nK‹url›: http://x"},
		{"toml", marked("toml", `a.b = true`), `K‹a.b› = K‹true›`},
		{"diff", marked("diff", "+a", "-b", " c", "@@ x"), "+‹+a›\n-‹-b›\n c\nK‹@@ x›"},
		{"sql", marked("SQL", "SELECT x -- c"), "K‹SELECT› x C‹-- c›"},
		{"lua", marked("lua", "--[[ a", "b ]] local c -- d"), "C‹--[[ a›\nC‹b ]]› K‹local› c C‹-- d›"},
		{"unknown", marked("brainfuck", "if func 1"), "if func 1"},
		{"words beyond ASCII", marked("go", "größe := 日本"), "größe := 日本"},
		{"open string", marked("go", `"abc`, `func`), "S‹\"abc›\nK‹func›"},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}
