package draw

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

func sample(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/markdown.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSample(t *testing.T) {
	for _, width := range []int{20, 40, 80, 120} {
		var b strings.Builder
		for _, line := range Markdown(sample(t), width, mono) {
			line = ansi.Strip(line)
			b.WriteString(line + strings.Repeat(" ", max(0, width-safetext.Width(line))) + "│\n")
		}
		tuitest.Golden(t, fmt.Sprint("markdown-", width), b.String())
	}
	lines := strings.Join(Markdown(sample(t), 72, colours), "\n") + "\n"
	tuitest.Golden(t, "markdown-colours", strings.ReplaceAll(lines, "\x1b", "␛"))
}

func plainly(src string, width int) string {
	return ansi.Strip(strings.Join(Markdown(src, width, colours), "|"))
}

func TestBlocks(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"only space", " \n\n\t\n", ""},
		{"paragraphs", "one\n\n\n\ntwo", "one||two"},
		{"line breaks stay", "one\ntwo  \nthree\\\nfour", "one|two|three|four"},
		{"heading and text", "# A\ntext\n## B", "A|text|B"},
		{"tight list after text", "List:\n- a\n- b\n\nend", "List:|• a|• b||end"},
		{"loose list", "- a\n\n- b\n\n  more\n\nend", "• a||• b||  more||end"},
		{"loose list is one list", "1. a\n\n1. b", "1. a||2. b"},
		{"indented code is one block", "    a\n\n\n    b", "  a|||  b"},
		{"numbers are aligned", "9. a\n1. b", " 9. a|10. b"},
		{"tasks", "- [x] a\n- [ ] b\n- c", "☑ a|☐ b|• c"},
		{"fence between items", "1. a:\n```sh\nls\n```\n2. b", "1. a:||  ls||2. b"},
		{"fence in an item", "1. a:\n   ```sh\n   ls\n\n   pwd\n   ```\n2. b", "1. a:|     ls||     pwd|2. b"},
		{"open fence", "```go\nfunc", "  func"},
		{"empty fence", "a\n\n```\n```\nb", "a||b"},
		{"fence in a longer fence", "````\n```\nx\n```\n````\nend", "  ```|  x|  ```||end"},
		{"tilde", "~~~\n```\n~~~\nend", "  ```||end"},
		{"indented fence", "  ```\n    a\n  b\n  ```", "    a|  b"},
		{"no fence", "```a`b", "```a`b"},
		{"blank lines in code stay", "```\na\n\n\nb\n```", "  a|||  b"},
		{"indented code", "    a\n\n    b\n\nend", "  a||  b||end"},
		{"quote", "> a\n> b\nlazy", "│ a|│ b|│ lazy"},
		{"reference in its block", "[a][1]\n\n[1]: x", "[a][1]"},
		{"unfinished emphasis", "**bol", "**bol"},
		{"html", "<b>x</b>\n\n<!-- a\nb -->", "<b>x</b>||<!-- a|b -->"},
		{"entity that is a control character", "&#27;[31mred &#x9b;1m &#8238;x", "[31mred  x"},
		{"carriage returns", "a\r\nb\r\n\r\nc", "a|b||c"},
		{"tab", "a\tb", "a   b"},
		{"link that says itself", "<https://a.b> [https://a.b](https://a.b) <a@b.c>", "https://a.b https://a.b a@b.c"},
		{"table without room", "|a|b|c|\n|-|-|-|\n|1|2|3|\n|4|5|6|", "a: 1|b: 2|c: 3||a: 4|b: 5|c: 6"},
		{"table after text", "text\n|a|b|\n|-|-|\n|1|2|", "text|a │ b|──┼──|1 │ 2"},
		{"bars in a table", "a | b\n--|--\n`x` | y \\| z", "a │ b|──┼──────|x │ y | z"},
		{"no table", "a|b\n-|-|-\nc", "a|b|-|-|-|c"},
		{"rule without bars", "a\n---", "a"},
		{"empty cells", "|a||\n|-|-|\n||x|", "a │|──┼──|  │ x"},
		{"strike", "~~a~~ ~b~ ~~~c ~~d~", "a b ~~~c ~~d~"},
		{"not a task", "- [y] a\n- [x]b\n- *c* [x] d\n\ntext [x] e", "• [y] a|• [x]b|• c [x] d||text [x] e"},
		{"uneven table", "|a|b|\n|-|-|\n|1|\n|1|2|3|", "a │ b|──┼──|1 │|1 │ 2"},
	} {
		width := 60
		if tt.name == "table without room" {
			width = 15
		}
		if d := cmp.Diff(tt.want, plainly(tt.src, width)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// A list of any length is drawn in pieces that do not show.
func TestLongBlocks(t *testing.T) {
	var src, loose, want, wantLoose []string
	for i := range 1000 {
		src = append(src, fmt.Sprintf("- item %d", i))
		loose = append(loose, fmt.Sprintf("- item %d\n", i))
		want = append(want, fmt.Sprintf("• item %d", i))
		wantLoose = append(wantLoose, fmt.Sprintf("• item %d", i), "")
	}
	if d := cmp.Diff(strings.Join(want, "|"), plainly(strings.Join(src, "\n"), 60)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(strings.Join(wantLoose[:1999], "|"), plainly(strings.Join(loose, "\n"), 60)); d != "" {
		t.Errorf("loose (-want +got):\n%s", d)
	}
}

// The address alone is underlined, not the full stop behind it.
func TestBareLinks(t *testing.T) {
	got := Markdown("see http://a.b/c_d_e, (https://x.y) xhttp://no https:// https://w/a_(b).", 80, mono)[0]
	want := "see \x1b[4mhttp://a.b/c_d_e\x1b[24m, (\x1b[4mhttps://x.y\x1b[24m) xhttp://no https:// \x1b[4mhttps://w/a_(b)\x1b[24m."
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Without colours code still differs from text.
func TestCodeWithoutColours(t *testing.T) {
	if got := Markdown("run `ls`", 40, mono)[0]; got != "run `ls`" {
		t.Errorf("got %q", got)
	}
}
