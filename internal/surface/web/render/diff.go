package render

import (
	"strings"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/markup"
	"github.com/fermata-agent/fermata/internal/safetext"
	t "github.com/fermata-agent/fermata/internal/transcript"
)

// Diff makes the HTML of a diff in git's format, all of it.
func Diff(diff string) string {
	h := &builder{}
	h.changes(t.ParseDiff(diff), "", Options{Full: true})
	return h.String()
}

// changes adds what happens to files, each with its hunks.
func (h *builder) changes(list []t.Change, dir string, o Options) {
	for _, c := range list {
		h.raw(`<details class="file" open><summary>`)
		h.text(safetext.ShowLine(c.Line(dir)))
		h.raw(`</summary><pre class="diff" tabindex="0" aria-label="changes">`)
		h.hunks(c.Diff, o)
		h.raw(`</pre></details>`)
	}
}

func (h *builder) hunks(diff string, o Options) {
	lines := strings.Split(strings.TrimRight(diff, "\n"), "\n")
	rest := 0
	if !o.Full && len(lines) > diffLines {
		lines, rest = lines[:diffLines], len(lines)-diffLines
	}
	for _, l := range lines {
		if l == "" {
			h.raw("\n")
			continue
		}
		class := lit("ctx")
		switch {
		case strings.HasPrefix(l, "@@"):
			class = "hunk"
		case l[0] == '+':
			class = "add"
		case l[0] == '-':
			class = "del"
		}
		l = safetext.ShowLine(l)
		if !o.Full { // what a person has to judge is shown whole
			l = cut(l, maxLine)
		}
		h.el("span", class, l)
	}
	if rest > 0 {
		h.el("span", "hunk", "… "+humanize.Count(rest, "more line"))
	}
}

// shell adds a command line, highlighted.
func (h *builder) shell(script string) {
	l := markup.NewHighlighter("sh")
	for i, line := range strings.Split(strings.TrimRight(script, " \n"), "\n") {
		if i > 0 {
			h.raw("\n")
		}
		h.codeLine(&l, line)
	}
}
