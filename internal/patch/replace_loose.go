package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// Models write the text to replace as they remember it: with other line ends, spaces in the place of tabs, typographic quotes, or
// escapes written twice. What they meant is carried out if it fits in exactly one place.

// replaceLoosely does a replacement whose text is not in the file as it was written. It reports whether the text is there in one of
// the other ways; an error says that it is there more than once.
func replaceLoosely(data string, s syntax.Section) (string, bool, *syntax.Error) {
	for _, other := range []func(string) string{withoutCR, unescape} {
		if data, ok := replaceOnce(data, s, other); ok {
			return data, true, nil
		}
	}
	return replaceLines(data, s)
}

func withoutCR(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// unescape takes one layer of escapes away.
func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, `'`).Replace(text)
}

// replaceOnce tries the replacement with both texts written differently.
func replaceOnce(data string, s syntax.Section, other func(string) string) (string, bool) {
	old := other(s.Old)
	if old == s.Old || old == "" {
		return "", false
	}
	if n := strings.Count(data, old); n == 0 || n > 1 && !s.All {
		return "", false
	}
	return strings.ReplaceAll(data, old, other(s.Content)), true
}

// replaceLines replaces whole lines that equal those of the text but for white space and typographic characters.
func replaceLines(data string, s syntax.Section) (string, bool, *syntax.Error) {
	want := strings.Split(strings.TrimSuffix(withoutCR(s.Old), "\n"), "\n")
	if !slices.ContainsFunc(want, func(l string) bool { return strings.TrimSpace(l) != "" }) {
		return "", false, nil
	}
	src := newSource(data)
	for look := range looks {
		places := src.places(want, look)
		if len(places) == 0 {
			continue
		}
		if len(places) > 1 && !s.All {
			return "", false, &syntax.Error{
				Problem: fmt.Sprintf("the old text is not in the file as it is written; with other white space or quotes it is there %d times, at lines %s", len(places), lineNumbers(places)),
				Hint:    "add lines around it so that it is there once, and copy it exactly",
			}
		}
		for _, at := range slices.Backward(places) {
			src.replaceAt(at, want, s)
		}
		return strings.Join(src.lines, ""), true, nil
	}
	return "", false, nil
}

// places lists where the wanted lines stand as a look sees them; places that overlap an earlier one do not count.
func (s *source) places(want []string, look int) []int {
	seen := make([]string, len(want))
	for i, text := range want {
		seen[i] = looks[look](text)
	}
	var list []int
	have := s.form(look)
	for at := 0; at+len(seen) <= len(have); at++ {
		if slices.Equal(have[at:at+len(seen)], seen) {
			list = append(list, at)
			at += len(seen) - 1
		}
	}
	return list
}

func lineNumbers(places []int) string {
	var list []string
	for i, at := range places {
		if i == 10 {
			return strings.Join(list, ", ") + " and more"
		}
		list = append(list, fmt.Sprint(at+1))
	}
	return strings.Join(list, ", ")
}

// replaceAt puts the new text in the place of the lines that stand for the wanted ones. A line that the new text repeats stays as it is
// in the file, and others are indented as their neighbours are.
func (s *source) replaceAt(at int, want []string, section syntax.Section) {
	have := s.texts(at, at+len(want))
	end := s.lines[at+len(want)-1]
	newline := s.lineEnd(at)
	text := withoutCR(section.Content)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	var with []string
	for _, line := range lines {
		if i := slices.Index(want, line); i >= 0 {
			line = have[i]
		} else {
			line = indentLike(line, want, have)
		}
		with = append(with, strings.TrimSuffix(line, "\r")+newline)
	}
	if n := len(with); n > 0 && !strings.HasSuffix(end, "\n") { // the last line of a file without a line end
		with[n-1] = strings.TrimSuffix(with[n-1], newline)
	}
	s.lines = slices.Concat(s.lines[:at], with, s.lines[at+len(want):])
}

// indentLike indents a line as the file does, which the lines that were wanted and found show.
func indentLike(line string, want, have []string) string {
	rest := strings.TrimLeft(line, " \t")
	indent := line[:len(line)-len(rest)]
	best, instead := -1, ""
	unit := 0 // spaces that stand for a tab
	for i := range want {
		from, to := indentOf(want[i]), indentOf(have[i])
		if strings.TrimSpace(want[i]) == "" {
			continue
		}
		if tabs := strings.Count(to, "\t"); tabs > 0 && len(from) >= tabs && strings.Trim(from, " ") == "" && len(from)%tabs == 0 {
			unit = len(from) / tabs
		}
		if strings.HasPrefix(indent, from) && len(from) > best {
			best, instead = len(from), to
		}
	}
	if best < 0 {
		return line
	}
	more := indent[best:]
	if unit > 0 {
		more = strings.ReplaceAll(more, strings.Repeat(" ", unit), "\t")
	}
	return instead + more + rest
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }
