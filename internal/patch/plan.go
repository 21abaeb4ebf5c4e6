package patch

import (
	"encoding/json"
	"io/fs"
	"slices"
	"unicode/utf8"
)

// Plan is what a patch will do, worked out in memory: for each file what must
// be there before and what will be there after. It holds all that is needed to
// apply, to show and to take back the patch, and survives JSON.
type Plan struct {
	Files    []File   `json:"files"`               // in the order in which the patch first names them
	MakeDirs []string `json:"make_dirs,omitempty"` // directories to be made first, outermost first
	DropDirs []string `json:"drop_dirs,omitempty"` // directories to be removed at the end if they are empty, innermost first
}

// File is the change of one file.
type File struct {
	Path   string   `json:"path"`             // absolute, symbolic links resolved
	Name   string   `json:"name"`             // as the patch spells it
	From   string   `json:"from,omitempty"`   // Path of the file that was moved here
	Before *Content `json:"before,omitempty"` // nil: there is no such file
	After  *Content `json:"after,omitempty"`  // nil: there will be no such file
}

// Content is what a file holds.
type Content struct {
	Data string
	Link string      // where it points, if it is a symbolic link; Data is empty then
	Mode fs.FileMode // permission bits; 0 in a new file: the system's default
}

// wireContent keeps text readable in JSON and other bytes whole.
type wireContent struct {
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"`
	Link string `json:"link,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
}

// MarshalJSON writes text as text and anything else in base64.
func (c Content) MarshalJSON() ([]byte, error) {
	w := wireContent{Link: c.Link, Mode: uint32(c.Mode)}
	if utf8.ValidString(c.Data) {
		w.Text = c.Data
	} else {
		w.Data = []byte(c.Data)
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Content) UnmarshalJSON(data []byte) error {
	var w wireContent
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = Content{Data: w.Text + string(w.Data), Link: w.Link, Mode: fs.FileMode(w.Mode)}
	return nil
}

// same says whether two contents are equal, modes apart. Either may be nil.
func same(a, b *Content) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Data == b.Data && a.Link == b.Link
}

// Paths returns every path that the plan writes or removes, sorted, for those
// who must decide whether it may. They are the real paths: no symbolic link
// leads anywhere else.
func (p *Plan) Paths() []string {
	paths := make([]string, 0, len(p.Files))
	for _, f := range p.Files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return paths
}

// Reverse returns the plan that takes this one back. Applying it fails with a
// ChangedError if a file is no longer what this plan made of it.
func (p *Plan) Reverse() *Plan {
	r := &Plan{MakeDirs: slices.Clone(p.DropDirs), DropDirs: slices.Clone(p.MakeDirs)}
	slices.Reverse(r.MakeDirs)
	slices.Reverse(r.DropDirs)
	moved := map[string]string{}
	for _, f := range p.Files {
		if f.From != "" {
			moved[f.From] = f.Path
		}
	}
	for _, f := range p.Files {
		r.Files = append(r.Files, File{Path: f.Path, Name: f.Name, From: moved[f.Path], Before: f.After, After: f.Before})
	}
	return r
}

// Combine returns the plan that does at once what the given plans did one after
// the other, as the sum of a turn. What happened to a file between two of the
// plans becomes part of it.
func Combine(plans ...*Plan) *Plan {
	l := newLedger()
	sum := &Plan{}
	for _, p := range plans {
		// All that moves is looked up before anything is written over it.
		origins := map[string]string{}
		for _, f := range p.Files {
			origins[f.Path] = l.originOf(f)
		}
		for _, f := range p.Files {
			e := l.entry(f.Path)
			if e == nil {
				e = l.add(f.Path, f.Before)
			}
			e.set(f.Name, f.After, origins[f.Path])
		}
		for _, dir := range p.MakeDirs {
			if !slices.Contains(sum.MakeDirs, dir) {
				sum.MakeDirs = append(sum.MakeDirs, dir)
			}
		}
		sum.DropDirs = append(sum.DropDirs, p.DropDirs...)
	}
	for _, f := range l.files() {
		if !same(f.Before, f.After) {
			sum.Files = append(sum.Files, f)
		}
	}
	return sum
}

// ledger is the state of all files that a patch has named so far. Sections on
// one path compose in it.
type ledger struct {
	order  []string
	byPath map[string]*entry
}

type entry struct {
	File
	origin  string // where on disk the content was at first; empty if it was nowhere
	line    int    // of the section that named it last, while it existed
	touched bool   // not only looked at
}

// set changes what is there. The first name under which that is asked for stays.
func (e *entry) set(name string, after *Content, origin string) {
	if !e.touched {
		e.Name = name
	}
	e.After, e.origin, e.touched = after, origin, true
}

func newLedger() *ledger { return &ledger{byPath: map[string]*entry{}} }

func (l *ledger) entry(path string) *entry { return l.byPath[path] }

func (l *ledger) add(path string, before *Content) *entry {
	e := &entry{File: File{Path: path, Before: before, After: before}}
	if before != nil {
		e.origin = path
	}
	l.order = append(l.order, path)
	l.byPath[path] = e
	return e
}

// originOf returns where the content was at first that a later plan puts into
// a file.
func (l *ledger) originOf(f File) string {
	source := f.Path
	if f.From != "" {
		source = f.From
	}
	if e := l.byPath[source]; e != nil {
		return e.origin
	}
	if f.From == "" && f.Before == nil {
		return ""
	}
	return source
}

// files returns the outcome. A file that came and went is not part of it, and a
// move is one only if there is no file at the old place any more.
func (l *ledger) files() []File {
	var files []File
	for _, path := range l.order {
		e := l.byPath[path]
		if !e.touched || e.Before == nil && e.After == nil {
			continue
		}
		f := e.File
		if from := l.byPath[e.origin]; f.After != nil && e.origin != path && from != nil && from.After == nil {
			f.From = e.origin
		}
		files = append(files, f)
	}
	return files
}
