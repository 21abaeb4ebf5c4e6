package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/protocol"
)

// An openEditor has files open that are not saved.
type openEditor struct {
	texts    map[string]string
	readOnly bool
	broken   error // what a write fails with

	asked []string
}

func (e *openEditor) Read(_ context.Context, path string) (string, bool) {
	e.asked = append(e.asked, path)
	text, ok := e.texts[path]
	return text, ok
}
func (e *openEditor) CanWrite() bool { return !e.readOnly }

func (e *openEditor) Write(_ context.Context, path, text string) error {
	if e.broken == nil {
		e.texts[path] = text
	}
	return e.broken
}

// What is read of a file is what the user sees in the editor, after the same checks as for the disk.
func TestReadOpenFile(t *testing.T) {
	dir := fileTree(t, map[string]string{"open": "saved\n", "other": "on disk\n", "key": "secret\n"})
	e := &openEditor{texts: map[string]string{filepath.Join(dir, "open"): "typed\n", filepath.Join(dir, "key"): "secret, typed\n", filepath.Join(dir, "gone"): "x"}}
	r := &Read{Files: &Files{Buffers: e, Secret: func(path string) bool { return filepath.Base(path) == "key" }}}
	for name, want := range map[string]string{"open": "     1\ttyped\n", "other": "     1\ton disk\n", "key": "secrets", "gone": "no such file", ".": "directory"} {
		c := call(&fakeHost{}, dir, nil)
		c.Arguments = `{"path":"` + name + `"}`
		if out := r.Run(t.Context(), c).Output; !strings.Contains(printedBy(out), want) {
			t.Errorf("%s: %s", name, printedBy(out))
		}
	}
	if slices.Contains(e.asked, filepath.Join(dir, "key")) {
		t.Error("the editor was asked for a secret file")
	}
}

// printedBy is what a call shows.
func printedBy(out protocol.ToolOutput) string {
	if out.Command != nil {
		return out.Command.Output
	}
	return out.Output
}

// A file that is not saved in the editor is changed there, and recorded like any patch; the disk is left alone.
func TestPatchOfOpenFile(t *testing.T) {
	const disk, typed = "one\ntwo\n", "one\ntwo and more\nthree\n"
	for name, tt := range map[string]struct {
		patch    string
		readOnly bool
		broken   error
		want     string // in the answer; empty: it was applied
		editor   string // what it has then
		disk     string
	}{
		"changed there":                       {patch: update("a", "three", "four"), editor: "one\ntwo and more\nfour\n", disk: disk},
		"the text of the disk does not count": {patch: update("a", "two", "four"), want: "error", editor: typed, disk: disk},
		"read only":                           {patch: update("a", "three", "four"), readOnly: true, want: "cannot be asked to change it: ask the user to save", editor: typed, disk: disk},
		"refused":                             {patch: update("a", "three", "four"), broken: errors.New("no room"), want: "the editor did not change", editor: typed, disk: disk},
		"with another file":                   {patch: begin("*** Update File: a\n@@\n-three\n+four\n*** Add File: b\n+b\n"), want: "in a patch of its own", editor: typed, disk: disk},
		"deleted":                             {patch: begin("*** Delete File: a\n"), want: "cannot be moved or deleted", editor: typed, disk: disk},
		"saved":                               {patch: update("c", "one", "four"), editor: typed, disk: disk},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fileTree(t, map[string]string{"a": disk, "c": disk})
			path := filepath.Join(dir, "a")
			e := &openEditor{texts: map[string]string{path: typed, filepath.Join(dir, "c"): disk}, readOnly: tt.readOnly, broken: tt.broken}
			h := &fakeHost{}
			out := (&Patch{Buffers: e}).Run(t.Context(), patchCall(h, dir, tt.patch)).Output
			if applied := out.Patch != nil && out.Patch.Applied; applied != (tt.want == "") || !strings.Contains(out.Output, tt.want) {
				t.Errorf("applied %v: %s", applied, out.Output)
			}
			text, err := os.ReadFile(path)
			if err != nil || string(text) != tt.disk || e.texts[path] != tt.editor {
				t.Errorf("on disk %q, in the editor %q, %v", text, e.texts[path], err)
			}
			if name != "changed there" {
				return
			}
			started, committed := false, false
			for _, b := range h.events {
				switch b := b.(type) {
				case *protocol.PatchStarted:
					started = strings.Contains(string(b.Changes), "four") && len(b.Back) > 0
				case *protocol.PatchCommitted:
					committed = started
				}
			}
			if !committed {
				t.Errorf("recorded %v", h.events)
			}
		})
	}
}
