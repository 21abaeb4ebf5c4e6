package patch

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

func TestReplaceText(t *testing.T) {
	for _, tt := range []struct {
		name, data, old, with string
		all                   bool
		want, problem         string
	}{
		{name: "once", data: "a b c", old: "b", with: "x", want: "a x c"},
		{name: "delete", data: "a\nb\n", old: "a\n", with: "", want: "b\n"},
		{name: "all", data: "a b a", old: "a", with: "x", all: true, want: "x b x"},
		{name: "twice", data: "a\nb\na\n", old: "a", with: "x", problem: "2 times, at lines 1, 3"},
		{name: "not there", data: "func main() {\n}\n", old: "func  main() {", with: "x", problem: "nearest text, from line 1"},
		{name: "same", data: "a", old: "a", with: "a", problem: "the same"},
		{name: "CRLF", data: "a\r\nb\r\n", old: "a\nb", with: "c\nd", want: "c\r\nd\r\n"},
		{name: "CRLF spelled out", data: "a\r\nb\r\n", old: "a\r\n", with: "c\n", want: "c\nb\r\n"},
		{name: "CRLF in the call only", data: "a\nb\nc\n", old: "a\r\nb\r\n", with: "x\r\ny\r\n", want: "x\ny\nc\n"},
		{name: "spaces for tabs", data: "f() {\n\tif x {\n\t\tg()\n\t}\n}\n", old: "    if x {\n        g()\n    }", with: "    if x {\n        g()\n        if y {\n            h()\n        }\n    }", want: "f() {\n\tif x {\n\t\tg()\n\t\tif y {\n\t\t\th()\n\t\t}\n\t}\n}\n"},
		{name: "less indentation", data: "  a:\n    b: 1\n", old: "b: 1", with: "b: 2", want: "  a:\n    b: 2\n"},
		{name: "lines with less indentation", data: "  a:\n    b: 1\n    c: 2\n", old: "b: 1\nc: 2\n", with: "b: 1\nd: 3\n", want: "  a:\n    b: 1\n    d: 3\n"},
		{name: "trailing blanks", data: "a  \nb\n", old: "a\nb", with: "a\nc", want: "a  \nc\n"},
		{name: "curly quotes", data: "say “hi” – now\nthen\n", old: "say \"hi\" - now\nthen", with: "say \"hi\" - now\nlater", want: "say “hi” – now\nlater\n"},
		{name: "doubled escapes", data: "a\n\tb \"c\"\n", old: `a\n\tb \"c\"`, with: `a\n\tb \"d\"`, want: "a\n\tb \"d\"\n"},
		{name: "no line end in the file", data: "\ta", old: "  a", with: "  b\n", want: "\tb"},
		{name: "loosely deleted", data: "a\n\tb\nc\n", old: "  b\n", with: "", want: "a\nc\n"},
		{name: "loosely there twice", data: "\ta\nb\n\ta\n", old: "  a", with: "  x", problem: "there 2 times, at lines 1, 3"},
		{name: "loosely there twice, all", data: "\ta\nb\n\ta\n", old: "  a", with: "  x", all: true, want: "\tx\nb\n\tx\n"},
		{name: "a part of a line is not loose", data: "x  =  1\n", old: "x = 1", with: "x = 2", problem: `| "x  =  1"`},
		{name: "nothing but blanks", data: "a\n\n\nb\n", old: "   \n", with: "c", problem: "not in the file"},
		{name: "empty file", data: "", old: "", with: "x", want: "x"},
		{name: "empty text", data: "a", old: "", with: "x", problem: "write the whole file"},
		{name: "in an empty file", data: "", old: "a", with: "x", problem: "which is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replaceText(tt.data, syntax.Section{Old: tt.old, Content: tt.with, All: tt.all})
			switch {
			case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)):
				t.Errorf("got %q, %v, want the error %q", got, err, tt.problem)
			case tt.problem == "" && (err != nil || got != tt.want):
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
