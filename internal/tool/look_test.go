package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/protocol"
)

// fileTree writes files below a new directory.
func fileTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	dir := fileTree(t, map[string]string{
		"a.txt": "one\ntwo\r\nthree", "empty": "", "long": lines(1, 20_000), "bin": "a\x00b", "sub/App.go": "x",
		"wide": strings.Repeat("é", 5000) + "\nend\n", "bad": "a\xffb\n",
	})
	for _, tt := range []struct{ name, args, want string }{
		{"whole", `{"path":"a.txt"}`, "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{"absolute", `{"path":"` + dir + `/a.txt","offset":3}`, "     3\tthree\n"},
		{"range", `{"path":"a.txt","offset":2,"limit":1}`, "     2\ttwo\n[More lines follow. Read on with offset 3.]\n"},
		{"range by its end", `{"file_path":"a.txt","start_line":1,"end_line":2}`, "     1\tone\n     2\ttwo\n[More lines follow. Read on with offset 3.]\n"},
		{"bare path", `"a.txt"`, "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{"empty", `{"path":"empty"}`, "(the file is empty)"},
		{"invalid UTF-8", `{"path":"bad"}`, "     1\ta\uFFFDb\n"},
		{"after the end", `{"path":"a.txt","offset":9}`, "! a.txt has only 3 lines"},
		{"missing", `{"path":"sub/app.go"}`, "! sub/app.go: there is no such file; there is App.go"},
		{"directory", `{"path":"sub"}`, "! sub: this is a directory: use list_files"},
		{"binary", `{"path":"bin"}`, "! bin: this is a binary file of 3 bytes"},
		{"device", `{"path":"/dev/zero"}`, "! /dev/zero: this is not a regular file"},
		{"no path", `{}`, `! failed to parse function arguments: the parameter "path" is missing`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := call(&fakeHost{}, dir, nil)
			c.Arguments = tt.args
			out := (&Read{}).Run(t.Context(), c).Output
			want, fails := strings.CutPrefix(tt.want, "! ")
			if got := out.Output; got != want && !(fails && strings.HasPrefix(got, want)) || out.Failed != fails {
				t.Errorf("got %q, failed %t, want %q", got, out.Failed, tt.want)
			}
		})
	}

	c := call(&fakeHost{}, dir, params{"path": "long", "offset": 101, "limit": 10_000})
	out := (&Read{}).Run(t.Context(), c).Output.Output
	if !strings.HasPrefix(out, "   101\tline 101\n") || len(out) > 50_000 || !strings.Contains(out, "[More lines follow. Read on with offset ") {
		t.Errorf("a long file gives %d bytes, begins %.40q, ends %q", len(out), out, out[len(out)-60:])
	}
	c = call(&fakeHost{}, dir, params{"path": "wide"})
	out = (&Read{}).Run(t.Context(), c).Output.Output
	if !strings.Contains(out, "é [... 8001 of 10001 bytes of this line omitted ...]\n     2\tend\n") {
		t.Errorf("a wide line gives %q", out[2000:])
	}
}

// Clients see what a model reads as commands, and what they do.
func TestLookingIsShownAsCommands(t *testing.T) {
	dir := fileTree(t, map[string]string{"a.go": "package a\n"})
	for _, tt := range []struct {
		tool Tool
		args params
		want policy.ParsedCommand
	}{
		{&Read{}, params{"path": "a.go"}, policy.ParsedCommand{Type: "read", Cmd: "cat a.go", Name: "a.go"}},
		{&Read{}, params{"path": "a.go", "offset": 1, "limit": 5}, policy.ParsedCommand{Type: "read", Cmd: "sed -n 1,5p a.go", Name: "a.go"}},
		{&List{}, params{"path": "."}, policy.ParsedCommand{Type: "list_files", Cmd: "ls .", Path: "."}},
		{&List{}, params{"pattern": "*.go"}, policy.ParsedCommand{Type: "list_files", Cmd: "rg --files -g '*.go' .", Path: "."}},
		{&Grep{}, params{"pattern": "package", "path": "a.go"}, policy.ParsedCommand{Type: "search", Cmd: "rg -n -e package -- a.go", Query: "package", Path: "a.go"}},
	} {
		h := &fakeHost{}
		out := tt.tool.Run(t.Context(), call(h, dir, tt.args)).Output
		if len(h.events) != 1 || out.Command == nil || out.Command.Output != out.Output || out.Failed {
			t.Fatalf("%v: recorded %v, output %+v", tt.args, h.events, out)
		}
		started := h.events[0].(*protocol.CommandStarted)
		if d := cmp.Diff([]policy.ParsedCommand{tt.want}, policy.Parsed(started.Command)); d != "" || started.Process != nil {
			t.Errorf("%v (-want +got):\n%s", tt.args, d)
		}
		if !tt.tool.ReadOnly() {
			t.Errorf("%s does not run side by side", tt.tool.Spec().Name)
		}
	}
}

func TestReadFileKeepsSecrets(t *testing.T) {
	dir := fileTree(t, map[string]string{"key": "secret"})
	if err := os.Symlink("key", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f := &Files{Secret: func(path string) bool { return path == filepath.Join(dir, "key") }}
	for _, path := range []string{"key", "link", "./x/../key"} {
		for _, tool := range []Tool{&Read{f}, &Grep{Files: f}} {
			out := tool.Run(t.Context(), call(&fakeHost{}, dir, params{"path": path, "pattern": "."})).Output
			if !out.Failed || strings.Contains(out.Output, "secret\n") {
				t.Errorf("%s %s: %+v", tool.Spec().Name, path, out)
			}
		}
	}
	out := (&Grep{Files: f}).Run(t.Context(), call(&fakeHost{}, dir, params{"pattern": "secret"})).Output
	if out.Output != noMatches {
		t.Errorf("a search of the directory finds %q", out.Output)
	}
}

func TestListFiles(t *testing.T) {
	dir := fileTree(t, map[string]string{
		".git/config": "", ".gitignore": "*.log\n/build/\n!keep.log\n", "a.go": "", "x.log": "", "keep.log": "", "build/out": "",
		"src/b.go": "", "src/deep/c.go": "", "src/deep/deeper/d.go": "", "src/build/e.go": "",
	})
	for _, tt := range []struct{ args, want string }{
		{`{}`, ".gitignore\na.go\nkeep.log\nsrc/\nsrc/b.go\nsrc/build/\nsrc/deep/\n"},
		{`{"path":"src","depth":1}`, "b.go\nbuild/\ndeep/\n"},
		{`{"pattern":"*.go"}`, "a.go\nsrc/b.go\nsrc/build/e.go\nsrc/deep/c.go\nsrc/deep/deeper/d.go\n"},
		{`{"pattern":"src/deep/**"}`, "src/deep/c.go\nsrc/deep/deeper/d.go\n"},
		{`{"pattern":"*.{md,txt}"}`, "(no files)"},
		{`{"path":"nowhere"}`, "nowhere: there is no such directory"},
		{`{"path":"a.go"}`, "a.go: this is not a directory"},
	} {
		c := call(&fakeHost{}, dir, nil)
		c.Arguments = tt.args
		if out := (&List{}).Run(t.Context(), c).Output; out.Output != tt.want {
			t.Errorf("%s: got %q, want %q", tt.args, out.Output, tt.want)
		}
	}
}

// What is ignored is what git ignores.
func TestIgnoreAsGitDoes(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := fileTree(t, map[string]string{
		".gitignore": "*.o\n/top\ndir/\nfoo/*\n!foo/keep\n**/deep\na/**/z\n[ab].c\n[!x].d\n\\#hash\n# comment\ntrail  \nsp\\ ace\n*.tmp\n!important.tmp\nq?z\n/sub/only\n",
		"x.o":        "", "sub/y.o": "", "top": "", "sub/top": "", "dir/f": "", "sub/dir/f": "", "sub2/dir": "", "foo/drop": "", "foo/keep": "",
		"p/deep/f": "", "deep": "", "a/z": "", "a/b/z": "", "a/b/c/z": "", "a.c": "", "c.c": "", "x.d": "", "y.d": "", "#hash": "", "trail": "",
		"sp ace": "", "n.tmp": "", "important.tmp": "", "qaz": "", "q/z": "", "sub/only": "", "other/sub/only": "",
		"nested/.gitignore": "!*.o\n/x\n", "nested/x": "", "nested/k.o": "", "nested/in/x": "",
	})
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "core.excludesFile="}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	want := strings.FieldsFunc(git("ls-files", "-z", "--others", "--exclude-standard"), func(r rune) bool { return r == 0 })
	slices.Sort(want)
	c := call(&fakeHost{}, dir, params{"pattern": "*"})
	got := strings.Split(strings.TrimSuffix((&List{}).Run(t.Context(), c).Output.Output, "\n"), "\n")
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-git +we):\n%s", d)
	}
}

func TestGrep(t *testing.T) {
	dir := fileTree(t, map[string]string{
		".git/config": "needle", ".gitignore": "*.log\n", "a.go": "one\nneedle two\nthree\nfour\nNeedle\n", "b.log": "needle", "bin": "needle\x00",
		"sub/c.md": "a needle\r\n", "many": strings.Repeat("hay\n", 500),
	})
	for _, tt := range []struct{ args, want string }{
		{`{"pattern":"needle"}`, "a.go:2:needle two\nsub/c.md:1:a needle\n"},
		{`{"pattern":"needle$"}`, "sub/c.md:1:a needle\n"},
		{`{"pattern":"needle","ignore_case":true,"path":"a.go"}`, "a.go:2:needle two\na.go:5:Needle\n"},
		{`{"pattern":"needle","context":1,"path":"a.go"}`, "a.go-1-one\na.go:2:needle two\na.go-3-three\n"},
		{`{"pattern":"(?i)needle","context":1,"path":"a.go"}`, "a.go-1-one\na.go:2:needle two\na.go-3-three\na.go-4-four\na.go:5:Needle\n"},
		{`{"pattern":"needle","glob":"*.md"}`, "sub/c.md:1:a needle\n"},
		{`{"pattern":"needle","files_only":true}`, "a.go\nsub/c.md\n"},
		{`{"query":"nothing"}`, "(no matches)"},
		{`{"pattern":"hay","limit":2}`, "many:1:hay\nmany:2:hay\n[There may be more matches. Narrow the search down.]\n"},
		{`{"pattern":"("}`, "the pattern is not a regular expression: error parsing regexp: missing closing ): `(`"},
		{`{"pattern":"x","path":"no"}`, "no: there is no such file or directory"},
	} {
		c := call(&fakeHost{}, dir, nil)
		c.Arguments = tt.args
		if out := (&Grep{}).Run(t.Context(), c).Output; out.Output != tt.want {
			t.Errorf("%s: got %q, want %q", tt.args, out.Output, tt.want)
		}
	}
}

// Where there is a ripgrep it does the work, as a command like every other.
func TestGrepWithRipgrep(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nfor a; do case $a in nothing) exit 1;; '(') echo 'regex parse error' >&2; exit 2;; esac; done\necho ./a.go:1:$*; seq 1 9\n"
	if err := os.WriteFile(filepath.Join(bin, "rg"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	sh := shell(t)
	sh.Environ = func() []string { return []string{"PATH=" + bin + ":" + os.Getenv("PATH")} }
	for _, tt := range []struct{ args, want string }{
		{
			`{"pattern":"-x","glob":"*.go","limit":2}`,
			"a.go:1:--no-config --color=never --no-heading --with-filename --sort=path --hidden --glob=!.git -n -g *.go -e -x -- .\n1\n[There are more matches. Narrow the search down.]\n",
		},
		{`{"pattern":"nothing"}`, "(no matches)"},
		{`{"pattern":"("}`, "regex parse error\n"},
	} {
		h := &fakeHost{}
		c := call(h, t.TempDir(), nil)
		c.Arguments = tt.args
		out := (&Grep{Shell: sh}).Run(t.Context(), c).Output
		if out.Output != tt.want || len(h.events) != 1 || h.events[0].(*protocol.CommandStarted).Process == nil {
			t.Errorf("%s: got %q, want %q; recorded %v", tt.args, out.Output, tt.want, h.events)
		}
	}
}

// Whoever only looks stops when the turn does.
func TestLookingStops(t *testing.T) {
	dir := fileTree(t, map[string]string{"a/b/c": "x", "long": lines(1, 50_000)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tool := range []Tool{&List{}, &Grep{}, &Read{}} {
		out := tool.Run(ctx, call(&fakeHost{}, dir, params{"path": ".", "pattern": "x"})).Output
		if !out.Aborted {
			t.Errorf("%s: %+v", tool.Spec().Name, out)
		}
	}
}

func TestToolSpecs(t *testing.T) {
	sh := shell(t)
	pt := &Patch{}
	for _, tool := range []Tool{
		sh, &Exec{Shell: sh}, WriteStdin{}, pt, &Edit{pt}, &Write{pt}, &Read{}, &List{}, &Grep{}, Plan{}, ViewImage{},
	} {
		spec := tool.Spec()
		var schema struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(spec.Parameters, &schema); err != nil || schema.Type != "object" || schema.Additional == nil || *schema.Additional || spec.Description == "" {
			t.Errorf("%s: %s: %v", spec.Name, spec.Parameters, err)
		}
		for name, p := range schema.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s: %s lacks a type or a description", spec.Name, name)
			}
		}
		if spec.Strict && len(schema.Required) != len(schema.Properties) {
			t.Errorf("%s is strict, and not all is required", spec.Name)
		}
	}
}
