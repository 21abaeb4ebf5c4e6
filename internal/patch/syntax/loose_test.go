package syntax

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalize(t *testing.T) {
	const body = "*** Add File: a\n+x\n"
	const whole = "*** Begin Patch\n" + body + "*** End Patch"
	for _, tt := range []struct {
		name, in, want string
		repairs        int
	}{
		{"nothing to do", whole + "\n", whole + "\n", 0},
		{"fence", "```patch\n" + whole + "\n```\n", whole, 1},
		{"prose", "Here it is:\n" + whole + "\nThat is all.", whole, 1},
		{"a call of the command", "apply_patch <<'EOF'\n" + whole + "\nEOF", whole, 1},
		{"blanks behind the markers", "*** Begin Patch \n" + body + "*** End Patch\t", whole, 1},
		{"blanks before the markers", "\n  *** Begin Patch\n" + body + "  *** End Patch\n", whole, 1},
		{"stars behind the markers", "*** Begin Patch ***\n" + body + "*** End Patch ***", whole, 1},
		{"other case", "*** begin patch\n" + body + "*** end patch", whole, 1},
		{"no markers", body, whole, 1},
		{"no markers in a fence", "```\n" + body + "```", whole, 1},
		{"no end", "*** Begin Patch\n" + body, whole, 1},
		{"a marker in a file stays", "*** Begin Patch\n*** Add File: a\n+*** End Patch\n*** End Patch", "*** Begin Patch\n*** Add File: a\n+*** End Patch\n*** End Patch", 0},
		{"not a patch", "hello", "hello", 0},
		{"empty", "", "", 0},
		{"CRLF", "*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n", "*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n", 0},
		{
			"unified diff", "--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
			"*** Begin Patch\n*** Update File: x.go\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n*** End Patch", 1,
		},
		{
			"git diff of three files",
			"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" +
				"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+c\n+d\n" +
				"diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-e\n",
			"*** Begin Patch\n*** Update File: x\n@@ -1 +1 @@\n-a\n+b\n*** Add File: n\n+c\n+d\n*** Delete File: o\n*** End Patch", 1,
		},
		{
			"renamed", "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b",
			"*** Begin Patch\n*** Update File: x\n*** Move to: y\n@@ -1 +1 @@\n-a\n+b\n*** End Patch", 1,
		},
		{"a rename alone is not understood", "diff --git a/x b/y\nrename from x\nrename to y\n", "diff --git a/x b/y\nrename from x\nrename to y\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, notes := Normalize(tt.in)
			if d := cmp.Diff(tt.want, got); d != "" || len(notes) != tt.repairs {
				t.Errorf("repairs %q, text (-want +got):\n%s", notes, d)
			}
			if tt.repairs > 0 {
				if _, err := Parse(got); err != nil {
					t.Errorf("cannot be parsed: %v", err)
				}
			}
		})
	}
}

// A patch that Parse takes is never changed in meaning.
func FuzzNormalize(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: a\n@@\n-*** End Patch\n+x\n*** End Patch\n")
	f.Fuzz(func(t *testing.T, text string) {
		before, err := Parse(text)
		if err != nil {
			return
		}
		fixed, _ := Normalize(text)
		after, err := Parse(fixed)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, fixed, err)
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%q became %q (-before +after):\n%s", text, fixed, d)
		}
	})
}
