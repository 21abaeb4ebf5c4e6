package config

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// A SourceKind says what sort of place a value came from. A greater one wins
// over a smaller one.
type SourceKind int

// The kinds of places.
const (
	FromDefault SourceKind = iota
	FromEnvironment
	FromFile
	FromProfile
	FromOverride // -c
	FromFlag
)

// A Source is where a value came from. The zero value is the default.
type Source struct {
	Kind SourceKind
	Name string // of the profile, the variable or the flag
	File string // for files and profiles; empty for a profile made with -c

	Line, Column int // in the file
}

// String is the source for people.
func (s Source) String() string {
	switch s.Kind {
	case FromEnvironment:
		return "environment " + s.Name
	case FromFile:
		return s.place()
	case FromProfile:
		return fmt.Sprintf("profile %s in %s", s.Name, s.place())
	case FromOverride:
		return "-c"
	case FromFlag:
		return "flag " + s.Name
	}
	return "default"
}

func (s Source) place() string {
	if s.File == "" {
		return "-c"
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// at is the source with a position.
func (s Source) at(p position) Source {
	s.Line, s.Column = p.line, p.column
	return s
}

// A Problem is something wrong with one place of the configuration.
type Problem struct {
	Source Source
	Key    string
	Text   string
}

// String is "place: key: text".
func (p Problem) String() string {
	var parts []string
	switch {
	case p.Source.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d:%d", p.Source.File, p.Source.Line, p.Source.Column))
	case p.Source.File != "":
		parts = append(parts, p.Source.File)
	case p.Source.Kind == FromProfile:
		parts = append(parts, "-c")
	case p.Source.Kind != FromDefault:
		parts = append(parts, p.Source.String())
	}
	if p.Key != "" {
		parts = append(parts, p.Key)
	}
	return strings.Join(append(parts, p.Text), ": ")
}

// compare orders problems as they are in the file; what is not in it follows.
func (p Problem) compare(q Problem) int {
	line := func(p Problem) int {
		if p.Source.Line == 0 {
			return math.MaxInt
		}
		return p.Source.Line
	}
	return cmp.Or(cmp.Compare(line(p), line(q)), cmp.Compare(p.Source.Column, q.Source.Column))
}

// A Warning is a problem that can be lived with.
type Warning struct {
	Problem
	Ineffective bool // the value is a good one, and has no effect here
	Foreign     bool // it is about a setting of Codex that fermata does not have
}

// Level is the word to print before it: "note" if nothing is wrong.
func (w Warning) Level() string {
	if w.Foreign {
		return "note"
	}
	return "warning"
}

// An Error is a problem that cannot.
type Error struct{ Problem }

func (e *Error) Error() string { return e.String() }
