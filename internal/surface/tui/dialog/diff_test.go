package dialog

import (
	"testing"

	"github.com/fermata-agent/fermata/internal/transcript"
)

func TestDiffOfChanges(t *testing.T) {
	got := DiffOf([]transcript.Change{
		{Path: "/w/new", Kind: "add", Diff: "@@ -0,0 +1 @@\n+a\n"},
		{Path: "/w/old", Kind: "delete"},
		{Path: "/w/from", Kind: "update", Move: "/w/to", Diff: "@@ -1 +1 @@\n-a\n+b"},
		{Path: "/x/far", Kind: "update", Diff: "@@ -1 +1 @@\n-a\n+b\n"},
	}, "/w")
	want := "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n--- a/old\n+++ /dev/null\n" +
		"--- a/from\n+++ b/to\n@@ -1 +1 @@\n-a\n+b\n--- /x/far\n+++ /x/far\n@@ -1 +1 @@\n-a\n+b\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
