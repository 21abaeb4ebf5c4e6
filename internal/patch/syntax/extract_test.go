package syntax

import (
	"strings"
	"testing"
)

const samplePatch = "*** Begin Patch\n*** Add File: a.txt\n+a $HOME `x` \\ 'y' \"z\"\n*** End Patch\n"

func TestExtractFindsPatch(t *testing.T) {
	doc := func(start string) string { return start + "\n" + samplePatch + "EOF\n" }
	tests := map[string]struct {
		argv []string
		dir  string
	}{
		"argument":            {argv: []string{"apply_patch", samplePatch}},
		"argument, other":     {argv: []string{"applypatch", samplePatch}},
		"bash -lc":            {argv: []string{"bash", "-lc", doc("apply_patch <<'EOF'")}},
		"bash -c":             {argv: []string{"bash", "-c", doc("apply_patch <<'EOF'")}},
		"sh -c":               {argv: []string{"sh", "-c", doc("applypatch <<'EOF'")}},
		"zsh -lc":             {argv: []string{"zsh", "-lc", doc("apply_patch <<'EOF'")}},
		"/bin/bash":           {argv: []string{"/bin/bash", "-lc", doc("apply_patch <<'EOF'")}},
		"double quotes":       {argv: []string{"bash", "-lc", doc(`apply_patch <<"EOF"`)}},
		"no quotes":           {argv: []string{"bash", "-lc", doc("apply_patch <<EOF")}},
		"backslash":           {argv: []string{"bash", "-lc", doc(`apply_patch <<\EOF`)}},
		"space before word":   {argv: []string{"bash", "-lc", doc("apply_patch << 'EOF'")}},
		"leading space":       {argv: []string{"bash", "-lc", doc("\n  apply_patch <<'EOF'")}},
		"quoted name":         {argv: []string{"bash", "-lc", doc("'apply_patch' <<'EOF'")}},
		"redirect first":      {argv: []string{"bash", "-lc", doc("<<'EOF' apply_patch")}},
		"comment after":       {argv: []string{"bash", "-lc", doc("apply_patch <<'EOF'") + "# done\n"}},
		"no final newline":    {argv: []string{"bash", "-lc", strings.TrimSuffix(doc("apply_patch <<'EOF'"), "\n")}},
		"cd":                  {argv: []string{"bash", "-lc", doc("cd sub && apply_patch <<'EOF'")}, dir: "sub"},
		"cd absolute":         {argv: []string{"bash", "-lc", doc("cd /a/b && apply_patch <<'EOF'")}, dir: "/a/b"},
		"cd single quotes":    {argv: []string{"bash", "-lc", doc("cd 'my $dir' && apply_patch <<'EOF'")}, dir: "my $dir"},
		"cd double quotes":    {argv: []string{"bash", "-lc", doc(`cd "my \"dir\"" && apply_patch <<'EOF'`)}, dir: `my "dir"`},
		"cd backslash":        {argv: []string{"bash", "-lc", doc(`cd my\ dir && apply_patch <<'EOF'`)}, dir: "my dir"},
		"cd pieces":           {argv: []string{"bash", "-lc", doc(`cd a"b"'c' && apply_patch <<'EOF'`)}, dir: "abc"},
		"cd kept backslash":   {argv: []string{"bash", "-lc", doc(`cd "a\b" && apply_patch <<'EOF'`)}, dir: `a\b`},
		"cd with two angles":  {argv: []string{"bash", "-lc", doc(`cd "a<<b" && apply_patch <<'EOF'`)}, dir: "a<<b"},
		"cd on its own line":  {argv: []string{"bash", "-lc", doc("cd sub &&\napply_patch <<'EOF'")}, dir: "sub"},
		"tabs with <<-":       {argv: []string{"bash", "-lc", "apply_patch <<-'EOF'\n\t" + strings.ReplaceAll(strings.TrimSuffix(samplePatch, "\n"), "\n", "\n\t\t") + "\n\tEOF\n"}},
		"tabs with <<- plain": {argv: []string{"bash", "-lc", "apply_patch <<-EOF\n\t" + strings.ReplaceAll(strings.TrimSuffix(samplePatch, "\n"), "\n", "\n\t\t") + "\n\tEOF\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			call, ok := Extract(tt.argv)
			if !ok {
				t.Fatalf("no patch found in %q", tt.argv)
			}
			if call.Patch != samplePatch {
				t.Errorf("patch is\n%s\nwant\n%s", call.Patch, samplePatch)
			}
			if call.Dir != tt.dir {
				t.Errorf("directory is %q, want %q", call.Dir, tt.dir)
			}
		})
	}
}

// A text that is broken as shell code is still a text: half a quote or half an
// expansion in an unquoted here-document.
func TestExtractUnquotedText(t *testing.T) {
	for _, text := range []string{"one ` tick", "open ${ brace", "$(half", "$((1", "tail \\", "cat <<X\n+`"} {
		body := "*** Begin Patch\n*** Add File: a\n+" + text + "\n*** End Patch\n"
		call, ok := Extract([]string{"bash", "-lc", "cd d && apply_patch <<EOF\n" + body + "EOF\n"})
		if !ok || call.Patch != body || call.Dir != "d" {
			t.Errorf("%q: got %q in %q, %v", text, call.Patch, call.Dir, ok)
		}
	}
}

func TestExtractLeavesOtherCommands(t *testing.T) {
	doc := func(start string) string { return start + "\n" + samplePatch + "EOF\n" }
	tests := map[string][]string{
		"nothing":               {},
		"only the name":         {"apply_patch"},
		"two arguments":         {"apply_patch", samplePatch, "x"},
		"other command":         {"cat", samplePatch},
		"other flag":            {"bash", "-x", doc("apply_patch <<'EOF'")},
		"more arguments":        {"bash", "-lc", doc("apply_patch <<'EOF'"), "x"},
		"other shell":           {"python", "-c", doc("apply_patch <<'EOF'")},
		"argument in script":    {"bash", "-lc", "apply_patch '" + strings.ReplaceAll(samplePatch, "'", "") + "'"},
		"argument and document": {"bash", "-lc", doc("apply_patch x <<'EOF'")},
		"no document":           {"bash", "-lc", "apply_patch"},
		"from file":             {"bash", "-lc", "apply_patch < p.txt"},
		"here string":           {"bash", "-lc", "apply_patch <<< 'x'"},
		"pipe in":               {"bash", "-lc", doc("cat <<'EOF' | apply_patch")},
		"pipe out":              {"bash", "-lc", doc("apply_patch <<'EOF' | tee log")},
		"output redirected":     {"bash", "-lc", doc("apply_patch <<'EOF' >log")},
		"other descriptor":      {"bash", "-lc", doc("apply_patch 3<<'EOF'")},
		"command after":         {"bash", "-lc", doc("apply_patch <<'EOF'") + "rm -rf x\n"},
		"command before":        {"bash", "-lc", doc("ls; apply_patch <<'EOF'")},
		"and after":             {"bash", "-lc", doc("apply_patch <<'EOF' && make")},
		"background":            {"bash", "-lc", doc("apply_patch <<'EOF' &")},
		"negated":               {"bash", "-lc", doc("! apply_patch <<'EOF'")},
		"subshell":              {"bash", "-lc", "(" + doc("apply_patch <<'EOF'") + ")"},
		"block":                 {"bash", "-lc", "{ " + doc("apply_patch <<'EOF'") + "}"},
		"assignment":            {"bash", "-lc", doc("X=1 apply_patch <<'EOF'")},
		"name from variable":    {"bash", "-lc", doc("$P <<'EOF'")},
		"name from command":     {"bash", "-lc", doc("$(echo apply_patch) <<'EOF'")},
		"other name":            {"bash", "-lc", doc("patch <<'EOF'")},
		"cd or":                 {"bash", "-lc", doc("cd a || apply_patch <<'EOF'")},
		"cd semicolon":          {"bash", "-lc", doc("cd a; apply_patch <<'EOF'")},
		"cd twice":              {"bash", "-lc", doc("cd a && cd b && apply_patch <<'EOF'")},
		"cd alone":              {"bash", "-lc", doc("cd && apply_patch <<'EOF'")},
		"cd back":               {"bash", "-lc", doc("cd - && apply_patch <<'EOF'")},
		"cd option":             {"bash", "-lc", doc("cd -P && apply_patch <<'EOF'")},
		"cd empty":              {"bash", "-lc", doc("cd '' && apply_patch <<'EOF'")},
		"cd two":                {"bash", "-lc", doc("cd a b && apply_patch <<'EOF'")},
		"cd home":               {"bash", "-lc", doc("cd ~/x && apply_patch <<'EOF'")},
		"cd glob":               {"bash", "-lc", doc("cd a* && apply_patch <<'EOF'")},
		"cd braces":             {"bash", "-lc", doc("cd {a,b} && apply_patch <<'EOF'")},
		"cd variable":           {"bash", "-lc", doc("cd $HOME && apply_patch <<'EOF'")},
		"cd quoted variable":    {"bash", "-lc", doc(`cd "$HOME" && apply_patch <<'EOF'`)},
		"cd substitution":       {"bash", "-lc", doc("cd $(pwd) && apply_patch <<'EOF'")},
		"cd ansi quotes":        {"bash", "-lc", doc(`cd $'a' && apply_patch <<'EOF'`)},
		"cd locale quotes":      {"bash", "-lc", doc(`cd $"a" && apply_patch <<'EOF'`)},
		"cd redirected":         {"bash", "-lc", doc("cd a >x && apply_patch <<'EOF'")},
		"cd in background":      {"bash", "-lc", doc("cd a && apply_patch <<'EOF' &")},
		"not cd":                {"bash", "-lc", doc("pushd a && apply_patch <<'EOF'")},
		"unclosed":              {"bash", "-lc", "apply_patch <<'EOF'\n" + samplePatch},
		"broken":                {"bash", "-lc", "if apply_patch"},
		"empty script":          {"bash", "-lc", ""},
	}
	for name, argv := range tests {
		t.Run(name, func(t *testing.T) {
			if call, ok := Extract(argv); ok {
				t.Errorf("%q was taken for a patch: %+v", argv, call)
			}
		})
	}
}

// FuzzExtract feeds any script to the search for a patch.
func FuzzExtract(f *testing.F) {
	f.Add("cd 'x' && apply_patch <<'EOF'\n" + samplePatch + "EOF\n")
	f.Add("apply_patch <<-EOF\n\t*** Begin Patch\n\tEOF\n")
	f.Add("apply_patch <<EOF\n${\nEOF")
	f.Add("apply_patch <<''\n\n")
	f.Add("apply_patch <<EOF\nEOF\n")
	f.Fuzz(func(t *testing.T, script string) {
		call, ok := Extract([]string{"bash", "-lc", script})
		if ok && !strings.Contains(script, "apply") && !strings.ContainsAny(script, `'"\`) {
			t.Fatalf("%q became %+v", script, call)
		}
	})
}

// The grammar for models and the parser must not drift apart.
func TestGrammarHasTheMarkers(t *testing.T) {
	for _, marker := range []string{beginMarker, endMarker, addHeader, delHeader, updHeader, moveHeader, eofMarker} {
		if !strings.Contains(Grammar, `"`+marker+`"`) {
			t.Errorf("%q is not in the grammar", marker)
		}
	}
}
