package syntax

import (
	"regexp"
	"strings"
	"sync"
)

// Normalize returns the patch in a text that a model wrote, in the form that Parse
// reads, and says in words what it changed. It removes what stands around the
// patch (a code fence, prose, a call of apply_patch), makes up for markers that are
// padded or missing, and turns a unified diff into a patch. A text that it does
// not understand is returned as it is.
func Normalize(text string) (string, []string) {
	var notes []string
	note := func(fixed, what string) {
		if fixed != text {
			text, notes = fixed, append(notes, what)
		}
	}
	note(between(text), "removed text around the patch")
	note(plainMarkers(text), "corrected the markers of the patch")
	if !strings.Contains(text, beginMarker) && hasHeader(text) {
		note(beginMarker+"\n"+strings.Trim(unfence(text), "\n")+"\n"+endMarker, "added the markers of the patch")
	}
	if !strings.Contains(text, beginMarker) && !hasHeader(text) {
		if fixed, ok := fromDiff(unfence(text)); ok {
			note(fixed, "took a unified diff for a patch")
		}
	}
	if strings.HasPrefix(text, beginMarker) && !strings.Contains(text, endMarker) {
		note(strings.TrimRight(text, "\n")+"\n"+endMarker, "added the end of the patch")
	}
	return text, notes
}

// unfence takes the content out of a Markdown code fence, if there is one.
func unfence(text string) string {
	open := fence().FindStringIndex(text)
	if open == nil {
		return text
	}
	body, _, closed := strings.Cut(text[open[1]:], "\n```")
	if !closed {
		return text
	}
	return body
}

var (
	fence     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?m)^[ \t]*```[a-zA-Z_-]*[ \t]*\n") })
	beginLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?mi)^[ \t]*\*\*\*[ \t]*Begin[ \t]+Patch[ \t]*(\*\*\*)?[ \t\r]*$`)
	})
	endLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?mi)^[ \t]*\*\*\*[ \t]*End[ \t]+Patch[ \t]*(\*\*\*)?[ \t\r]*$`)
	})
	header = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\*\*\* (Add|Update|Delete) File: \S`) })
)

func hasHeader(text string) bool { return header().MatchString(text) }

// between returns what stands between the first begin marker and the last end
// marker, with both. A text that has none, or nothing around them, stays.
func between(text string) string {
	begin, ends := beginLine().FindStringIndex(text), endLine().FindAllStringIndex(text, -1)
	if begin == nil || len(ends) == 0 {
		return text
	}
	end := ends[len(ends)-1]
	if end[0] < begin[1] || strings.TrimSpace(text[:begin[0]])+strings.TrimSpace(text[end[1]:]) == "" {
		return text
	}
	return text[begin[0]:end[1]]
}

// plainMarkers spells the markers as they should be. Only the first line and the
// last one can be markers: others are the text of a file.
func plainMarkers(text string) string {
	trimmed := strings.TrimSpace(text)
	first, rest, ok := strings.Cut(trimmed, "\n")
	if !ok || !beginLine().MatchString(first) {
		return text
	}
	crlf := ""
	if strings.HasSuffix(first, "\r") {
		crlf = "\r"
	}
	at := strings.LastIndexByte(rest, '\n') + 1
	last := rest[at:]
	if endLine().MatchString(last) {
		last = endMarker
	}
	fixed := beginMarker + crlf + "\n" + rest[:at] + last
	if fixed == trimmed {
		return text
	}
	return fixed
}

// fromDiff turns a unified diff into a patch.
func fromDiff(text string) (string, bool) {
	d := &diffReader{lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}
	var out []string
	for d.at < len(d.lines) {
		section, ok := d.file()
		if !ok {
			return "", false
		}
		out = append(out, section...)
	}
	if len(out) == 0 {
		return "", false
	}
	return beginMarker + "\n" + strings.Join(out, "\n") + "\n" + endMarker, true
}

type diffReader struct {
	lines []string
	at    int
}

// file reads the diff of one file and returns its section. At the end of the
// text the section is empty.
func (d *diffReader) file() ([]string, bool) {
	renamed := ""
	for ; d.at < len(d.lines); d.at++ {
		line := d.lines[d.at]
		if to, ok := strings.CutPrefix(line, "rename to "); ok {
			renamed = to
		}
		if strings.HasPrefix(line, "--- ") && d.at+1 < len(d.lines) && strings.HasPrefix(d.lines[d.at+1], "+++ ") {
			break
		}
	}
	if d.at+1 >= len(d.lines) {
		return nil, renamed == "" // a rename without a change has no form in a patch
	}
	old, now := headerPath(d.lines[d.at], "a/"), headerPath(d.lines[d.at+1], "b/")
	d.at += 2
	body, ok := d.body()
	switch {
	case !ok:
		return nil, false
	case old == "/dev/null":
		return append([]string{addHeader + now}, onlyLines(body, "+\\")...), true
	case now == "/dev/null":
		return []string{delHeader + old}, true
	case old != now && renamed != "":
		return append([]string{updHeader + old, moveHeader + now}, body...), true
	}
	return append([]string{updHeader + now}, body...), true
}

// body reads the hunks of one file.
func (d *diffReader) body() ([]string, bool) {
	start := d.at
	for ; d.at < len(d.lines); d.at++ {
		line := d.lines[d.at]
		next := d.at+1 < len(d.lines) && strings.HasPrefix(d.lines[d.at+1], "+++ ")
		if strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "--- ") && next {
			break
		}
		if line != "" && !strings.ContainsRune(" +-@\\", rune(line[0])) {
			return nil, false
		}
	}
	return d.lines[start:d.at], d.at > start
}

// headerPath is the path in a header line of a diff, without the date behind it.
func headerPath(line, prefix string) string {
	path, _, _ := strings.Cut(line[4:], "\t")
	return strings.TrimPrefix(strings.TrimSpace(path), prefix)
}

// onlyLines returns the lines that begin with one of the characters.
func onlyLines(lines []string, first string) []string {
	var out []string
	for _, l := range lines {
		if l != "" && strings.ContainsRune(first, rune(l[0])) {
			out = append(out, l)
		}
	}
	return out
}
