package patch

import (
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/patch/syntax"
)

// What Codex's published scenarios say of a patch holds here too, in patches of our own, as a model's text comes in. Two things are
// different: a patch that fails in its second file leaves the first one alone, and a last line without its end stays so.
func TestCodexScenarios(t *testing.T) {
	type files = map[string]string
	for _, tt := range []struct {
		name, patch   string
		before, after files // after nil: refused, and nothing is changed
	}{
		{"add a file", "*** Add File: notes.md\n+a title\n+\n+text\n", nil, files{"notes.md": "a title\n\ntext\n"}},
		{
			"add, change and delete at once", "*** Add File: sub/fresh\n+hello\n*** Delete File: stale\n*** Update File: kept\n@@\n-b\n+B\n",
			files{"stale": "x\n", "kept": "a\nb\n"},
			files{"sub/fresh": "hello\n", "kept": "a\nB\n"},
		},
		{"two chunks", "*** Update File: f\n@@\n-2\n+two\n@@\n-4\n+four\n", files{"f": "1\n2\n3\n4\n"}, files{"f": "1\ntwo\n3\nfour\n"}},
		{
			"move to a directory that is not there", "*** Update File: a/f\n*** Move to: b/c/g\n@@\n-old\n+new\n",
			files{"a/f": "old\n", "a/other": "o\n"},
			files{"b/c/g": "new\n", "a/other": "o\n"},
		},
		{"empty", "", files{"f": "1\n"}, nil},
		{"lines that are not there", "*** Update File: f\n@@\n-missing\n+x\n", files{"f": "1\n"}, nil},
		{"delete what is not there", "*** Delete File: g\n", files{"f": "1\n"}, nil},
		{"an update that changes nothing", "*** Update File: f\n", files{"f": "1\n"}, nil},
		{"update what is not there", "*** Update File: g\n@@\n-1\n+2\n", files{"f": "1\n"}, nil},
		{"move over a file", "*** Update File: f\n*** Move to: g\n@@\n-1\n+2\n", files{"f": "1\n", "g": "was\n"}, files{"g": "2\n"}},
		{"add over a file", "*** Add File: f\n+new\n", files{"f": "old\nlines\n"}, files{"f": "new\n"}},
		{"delete a directory", "*** Delete File: d\n", files{"d/f": "1\n"}, nil},
		{"a section that is not known", "*** Rename File: f\n", files{"f": "1\n"}, nil},
		{"a last line without its end", "*** Update File: f\n@@\n-alone\n+one\n+two\n", files{"f": "alone"}, files{"f": "one\ntwo"}},
		{"one line becomes two", "*** Update File: f\n@@\n-alone\n+one\n+two\n", files{"f": "alone\n"}, files{"f": "one\ntwo\n"}},
		{"the second file does not fit", "*** Add File: made\n+x\n*** Update File: gone\n@@\n-1\n+2\n", files{"f": "1\n"}, nil},
		{"only additions", "*** Update File: f\n@@\n+3\n+4\n", files{"f": "1\n2\n"}, files{"f": "1\n2\n3\n4\n"}},
		{"blanks before a section", "  *** Update File: f\n@@\n-1\n+2\n", files{"f": "1\n"}, files{"f": "2\n"}},
		{"letters of other scripts", "*** Update File: f\n@@\n-naïve “café” – 日本\n+наивный\n", files{"f": "naïve “café” – 日本\n"}, files{"f": "наивный\n"}},
		{"delete a file", "*** Delete File: g\n", files{"f": "1\n", "g": "2\n"}, files{"f": "1\n"}},
		{"only deletions", "*** Update File: f\n@@\n 1\n-2\n 3\n", files{"f": "1\n2\n3\n"}, files{"f": "1\n3\n"}},
		{"the end of the file", "*** Update File: f\n@@\n-same\n+last\n*** End of File\n", files{"f": "same\nx\nsame\n"}, files{"f": "same\nx\nlast\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, "*** Begin Patch\n"+tt.patch+"*** End Patch\n", tt.before, tt.after)
		})
	}
	for name, frame := range map[string][2]string{
		"blanks around both markers": {" *** Begin Patch\n", "*** End Patch \n"}, "the other way round": {"*** Begin Patch \n", " *** End Patch\n"},
	} {
		t.Run(name, func(t *testing.T) {
			runScenario(t, frame[0]+"*** Update File: f\n@@\n-1\n+2\n"+frame[1], files{"f": "1\n"}, files{"f": "2\n"})
		})
	}
}

func runScenario(t *testing.T, patch string, before, after map[string]string) {
	t.Helper()
	mem := NewMem(nil)
	mem.Put(workDir, "", fs.ModeDir|0o755)
	for name, text := range before {
		if dir, _, ok := strings.Cut(name, "/"); ok {
			mem.Put(workDir+"/"+dir, "", fs.ModeDir|0o755)
		}
		mem.Put(workDir+"/"+name, text, 0o644)
	}
	text, _ := syntax.Normalize(patch)
	plan, err := verifyText(t, mem, text)
	if err == nil {
		if err := Apply(t.Context(), mem, plan, plan.Record(), ignoreRecord); err != nil {
			t.Fatal(err)
		}
	}
	if refused := after == nil; refused != (err != nil) {
		t.Fatalf("refused is %t, want %t: %v", err != nil, refused, err)
	} else if refused {
		after = maps.Clone(before)
	}
	got := map[string]string{}
	for _, line := range dump(mem) {
		if name, content, _ := strings.Cut(line, "\n"); !strings.HasSuffix(name, " dir") {
			got[name] = content
		}
	}
	if diff := cmp.Diff(after, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
