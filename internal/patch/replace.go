package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// Replace is the kind of a section that replaces an exact text. No patch that is
// written as text has it; it is how a tool that is not a patch changes a file.
const Replace syntax.Kind = "replace"

// NewFile returns the patch that gives a file this content, whether or not it
// exists.
func NewFile(path, content string) *syntax.Patch {
	return &syntax.Patch{Sections: []syntax.Section{{Kind: syntax.Add, Path: path, Content: content}}}
}

// NewReplace returns the patch that replaces old, which must be in the file exactly
// once, or, with all, every occurrence of it. If the file uses CRLF and old does
// not, both texts are taken to mean CRLF. An empty old means a file that does not
// exist yet, or is empty.
func NewReplace(path, old, with string, all bool) *syntax.Patch {
	return &syntax.Patch{Sections: []syntax.Section{{Kind: Replace, Path: path, Old: old, Content: with, All: all}}}
}

// replace works out a Replace section.
func (v *verifier) replace(s syntax.Section) error {
	e, err := v.open(s.Path, resolver.file, s.Line)
	if err != nil {
		return err
	}
	if e.After == nil {
		if s.Old != "" {
			return v.missing(s, e)
		}
		e.set(s.Path, &Content{Data: s.Content}, "")
		return nil
	}
	data, problem := replaceText(e.After.Data, s)
	if problem != nil {
		problem.File = s.Path
		return problem
	}
	e.set(s.Path, &Content{Data: data, Mode: e.After.Mode}, e.origin)
	return nil
}

// replaceText does the replacement. The error lacks the file's name.
func replaceText(data string, s syntax.Section) (string, *syntax.Error) {
	old, with := s.Old, s.Content
	switch {
	case old == with:
		return "", &syntax.Error{Problem: "the old and the new text are the same"}
	case old == "" && data == "":
		return with, nil
	case old == "":
		return "", &syntax.Error{Problem: "the old text is empty, but the file is not", Hint: "give the text to replace, or write the whole file"}
	}
	n := strings.Count(data, old)
	if n == 0 && strings.Contains(data, "\r\n") && !strings.Contains(old, "\r") {
		old, with = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(with, "\n", "\r\n")
		n = strings.Count(data, old)
	}
	if n == 0 {
		found, ok, err := replaceLoosely(data, s)
		switch {
		case ok && found == data:
			return "", &syntax.Error{Problem: "the file has the new text already"}
		case ok || err != nil:
			return found, err
		}
	}
	switch {
	case n == 0:
		return "", textNotFound(data, old)
	case n > 1 && !s.All:
		return "", &syntax.Error{
			Problem: fmt.Sprintf("the old text is in the file %d times, at lines %s", n, occurrences(data, old)),
			Hint:    "add lines around it so that it is there once, or replace all of them",
		}
	}
	return strings.ReplaceAll(data, old, with), nil
}

// tellApart quotes lines that look the same and are not.
func tellApart(want, have []string) ([]string, []string) {
	want, have = slices.Clone(want), slices.Clone(have)
	for i := range min(len(want), len(have)) {
		if want[i] != have[i] && look(want[i]) == look(have[i]) {
			want[i], have[i] = strconv.QuoteToASCII(want[i]), strconv.QuoteToASCII(have[i])
		}
	}
	return want, have
}

// look is how a line prints, as far as a reader can tell.
func look(line string) string { return strings.Join(strings.Fields(plain(line)), " ") }

// occurrences lists the lines at which a text begins.
func occurrences(data, text string) string {
	const most = 10
	var list []string
	for at := 0; ; {
		i := strings.Index(data[at:], text)
		if i < 0 {
			return strings.Join(list, ", ")
		}
		if len(list) == most {
			return strings.Join(list, ", ") + " and more"
		}
		list = append(list, fmt.Sprint(1+strings.Count(data[:at+i], "\n")))
		at += i + len(text)
	}
}

// textNotFound explains why a text cannot be replaced.
func textNotFound(data, old string) *syntax.Error {
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(old, "\r\n", "\n"), "\n"), "\n")
	err := &syntax.Error{Wanted: want, Problem: "the old text is not in the file"}
	src := newSource(data)
	if len(src.lines) == 0 {
		err.Problem = "the old text is not in the file, which is empty"
		return err
	}
	if at, ok := src.nearest(want, 0); ok {
		err.NearestLine, err.Nearest = at+1, src.texts(at, at+len(want))
		err.Wanted, err.Nearest = tellApart(err.Wanted, err.Nearest)
		err.Hint = "it must match exactly, with every space and line end, and without line numbers"
	}
	return err
}
