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
