package draw

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// blocks are whole top-level blocks, as people and models write them.
var blocks = []string{
	"A paragraph of *some* words\nover two lines.",
	"# A heading",
	"A heading\n=========",
	"## A heading\nand text right below it",
	"- a\n- b\n  - c\n  - d\n- e",
	"* a\n\n* b\n\n  with a paragraph\n\n      and code\n\n* c",
	"1. one\n2. two\n   - deep\n\n     more\n3. three",
	"3) three\n4) four",
	"Intro:\n- a\n- b",
	"- item\n\n  ```go\n  func f() {\n\n  }\n  ```\n\n- next",
	"> quote\n> more\n>\n> - list\n> - in it",
	"| a | b |\n|---|--:|\n| 1 | 2 |",
	"    code\n\n    more code",
	"---",
	"* * *",
	"<div>\nhtml\n</div>",
	"**bold** and `code` and [link](http://x.y)",
	"- [ ] task\n- [x] done",
	"+ a lone item",
	"-not a list",
	"1.not a list",
	"漢字 " + "words and words and words and words and words",
}

// join puts random blocks below each other. Two lists in a row would be one to
// the reader too.
func join(r *rand.Rand) string {
	var list []string
	for range 1 + r.IntN(8) {
		list = append(list, blocks[r.IntN(len(blocks))])
	}
	return strings.Join(list, "\n"+strings.Repeat("\n", 1+r.IntN(2))) + "\n"
}

// Cutting a text into blocks does not change how it looks: drawn in one go by the
// parser alone it is the same.
func TestSplittingDoesNotShow(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range longtest.Default(2000, 700) {
		src, width := join(r), 20+r.IntN(60)
		want := drawBlock(src, width, colours)
		if d := cmp.Diff(want, Markdown(src, width, colours)); d != "" {
			t.Fatalf("%s\n(-parser alone +split):\n%s", src, d)
		}
	}
}

func TestListMark(t *testing.T) {
	for line, want := range map[string]int{
		"- a": 2, "* a": 2, "+   a": 4, "-      code": 2, "-": 2, "1. a": 3, "12) a": 4, "  - a": 4, "-a": 0, "1.a": 0, "1": 0, "a": 0, "": 0,
		"1234567890. a": 0, "--": 0, "-  ": 2,
	} {
		if got := listMark(line, indent(line)); got != want {
			t.Errorf("%q: got %d, want %d", line, got, want)
		}
	}
}

func TestFenceMark(t *testing.T) {
	for line, want := range map[string]string{
		"```": "```", "````go": "````", "~~~ x": "~~~", "   ```": "```", "    ```": "", "``": "", "```a`": "", "~~~a`": "~~~", "x```": "", "": "",
	} {
		if got := fenceMark(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]bool{"```": true, "````": true, "``": false, "```x": false, "~~~": false, "": false} {
		if got := fenceEnds(line, "```"); got != want {
			t.Errorf("%q ends it: %v", line, got)
		}
	}
}

func TestColumnWidths(t *testing.T) {
	row := func(cells ...string) []*runs {
		var list []*runs
		for _, c := range cells {
			r := &runs{}
			r.add(c, nil)
			list = append(list, r)
		}
		return list
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name string
		row  []*runs
		room int
		want []int
	}{
		{"enough", row(x(3), x(9)), 20, []int{3, 9}},
		{"exact", row(x(3), x(9)), 12, []int{3, 9}},
		{"the widest gives way", row(x(3), x(30)), 20, []int{3, 17}},
		{"evenly", row(x(30), x(30)), 20, []int{10, 10}},
		{"what is left over is used", row(x(30), x(30)), 21, []int{11, 10}},
		{"empty", row("", x(4)), 20, []int{1, 4}},
	} {
		if d := cmp.Diff(tt.want, columnWidths([][]*runs{tt.row}, tt.room)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}
