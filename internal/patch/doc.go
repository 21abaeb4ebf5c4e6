// Package patch verifies the patches that models write, as package syntax reads them, against the
// files, and applies them whole or not at all. It is pure but for the small
// interface FS, and starts no goroutine.
//
// # From text to files
//
//	call, ok := syntax.Extract(argv)           // only for a patch inside a shell call
//	p, err := syntax.Parse(text)               // *syntax.Error: which line is wrong, and how
//	plan, err := patch.Verify(ctx, fs, dir, p) // *syntax.Error: which file, what was looked for, the nearest text
//	…                                          // plan.Paths, plan.FileChanges: ask for approval
//	rec := plan.Record()
//	…                                          // record rec where it is found after a crash
//	err = patch.Apply(ctx, fs, plan, rec, func(rec patch.Record) error {
//		…                                  // record durably that rec is committed
//	})
//	…                                          // record the outcome; report plan.Summary
//
// After a crash, a record without an outcome goes to Recover, together with
// whether the commit was recorded. To undo an applied plan, apply
// plan.Reverse. The sum of several plans is Combine; its Diff is the diff
// of a turn.
//
// # The format
//
//	*** Begin Patch
//	*** Add File: docs/new.txt
//	+every line of the new file
//	*** Update File: src/app.go
//	*** Move to: cmd/app.go
//	@@ func main() {
//	 context
//	-removed
//	+added
//	*** End of File
//	*** Delete File: tmp.log
//	*** End Patch
//
// "Move to", the text after "@@" and "End of File" are optional, and so is the
// first "@@" of a section. An empty line in a chunk is an empty context line.
// White space around the patch, blank lines between sections, a here-document
// wrapper with the word EOF and CRLF line ends of the patch itself are ignored.
//
// The text after "@@" is an anchor: a line of the file above the place. Anchors
// may be stacked, one "@@" line each; each one is searched below the one before.
// A chunk's context and removed lines are searched below its anchors and below
// the chunk before it, first exactly, then without the CR of CRLF, without white
// space at the end of lines, without white space at both ends, and with
// typographic quotes, dashes and spaces taken for plain ones; the first place
// that fits the strictest of these wins. "End of File" means the last place
// instead, the end of the file if it fits at all. A chunk of added lines only
// goes below its anchor, or without one to the end of the file. Blank context
// lines at the end of a chunk that the file does not have are forgiven.
//
// Whatever the patch looks like, context lines keep the bytes of the file. New
// lines take the line end of their neighbours, a missing newline at the end of
// the file stays missing, a byte order mark stays first, and so does the mode.
// To change the final newline, use the convention of diff: a line
// "\ No newline at end of file" after the line that has none. A chunk in which a
// CR is spelled out means all its line ends literally.
//
// An added file may exist: it is replaced. Sections on the same file compose:
// each sees what those before it did, and the plan holds the sum. Symbolic links
// are followed before anything else is looked at, the way the system does it;
// the plan knows only real paths. Deleting or moving a link affects the link.
//
// # All or nothing
//
// Apply prepares every new content in a temporary file beside its target, and
// gives every old content a second name there; both are named
// ".fermata-ID-N.new" and ".old". Nothing that anybody looks at has changed so
// far, apart from empty directories. Then it checks that the files are still
// what they were, and calls commit. This is the point of decision: a stop, a
// crash or an error before it leaves nothing, after it everything. What follows
// is one rename or removal for each file. If one of these fails, the patch is
// rolled back, for which the second names are there: neither way needs space on
// the disk.
//
// Every intermediate state can be recognized by the names and contents that are
// left and by the digests in the record, so Recover may itself be interrupted and
// repeated. It never overwrites a file that another program has changed since.
//
// A directory that is replaced by a symbolic link on the way makes the patch
// fail: nothing is written anywhere else. Not protected against: a program that
// writes to one of the files in the moment between check and rename. A file with
// several hard links is split from the others. An owner is kept where the
// system permits it, extended attributes are not.
package patch
