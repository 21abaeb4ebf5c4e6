package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/patch/syntax"
	"github.com/fermata-agent/fermata/protocol"
)

// add is a patch that adds files, each with its own name in it.
func add(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "*** Add File: %s\n+%s\n", n, filepath.Base(n))
	}
	return begin(b.String())
}

func begin(sections string) string {
	return "*** Begin Patch\n" + sections + "*** End Patch\n"
}

func update(name, old, now string) string {
	return begin("*** Update File: " + name + "\n@@\n-" + old + "\n+" + now + "\n")
}

// patchCall is a call of apply_patch where everything in dir may be written.
func patchCall(h Host, dir, text string) Call {
	c := confined(h, dir, protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, nil)
	c.Name, c.Arguments = "apply_patch", text
	c.Settings.Sandbox.ExcludeSlashTmp, c.Settings.Sandbox.ExcludeTmpdirEnvVar = true, true
	return c
}

// realDir is a directory without a symbolic link in its name.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// files returns what is in a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, files(t, dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPatchForms(t *testing.T) {
	text := add("d/a.txt")
	input, _ := json.Marshal(params{"input": text})
	argv := func(argv ...string) string {
		b, _ := json.Marshal(params{"command": argv, "workdir": "."})
		return string(b)
	}
	for name, tt := range map[string]struct {
		tool func(*Patch) Tool
		args string
		want string
	}{
		"freeform":         {func(p *Patch) Tool { return p }, text, "d/a.txt"},
		"function":         {func(p *Patch) Tool { return p }, string(input), "d/a.txt"},
		"shell":            {func(p *Patch) Tool { return &Shell{Patch: p} }, argv("apply_patch", text), "d/a.txt"},
		"here-document":    {func(p *Patch) Tool { return &Shell{Patch: p} }, argv("bash", "-lc", "apply_patch <<'EOF'\n"+text+"EOF\n"), "d/a.txt"},
		"in a directory":   {func(p *Patch) Tool { return &Shell{Patch: p} }, argv("bash", "-lc", "cd sub && apply_patch <<'EOF'\n"+text+"EOF\n"), "sub/d/a.txt"},
		"shell and a path": {func(p *Patch) Tool { return &Shell{Patch: p} }, strings.Replace(argv("apply_patch", text), `"."`, `"sub"`, 1), "sub/d/a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, h := realDir(t), &fakeHost{}
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			res := tt.tool(&Patch{Changes: &Changes{}}).Run(t.Context(), patchCall(h, dir, tt.args))
			if res.Output.Failed || res.Output.Output != "Patch applied. Files changed:\nA d/a.txt\n" {
				t.Fatalf("result %+v", res)
			}
			wantFiles(t, dir, map[string]string{tt.want: "a.txt\n"})
			if res.Diff == nil || !strings.Contains(res.Diff.Diff, "+++ b/"+tt.want) {
				t.Errorf("diff of the turn: %+v", res.Diff)
			}
			if r := res.Output.Patch; r == nil || !r.Applied || r.Diff != res.Diff.Diff {
				t.Errorf("result of the patch: %+v", r)
			}
		})
	}
}

func TestPatchSpec(t *testing.T) {
	if s := (&Patch{Freeform: true}).Spec(); s.Kind != protocol.CallCustom || s.Grammar != syntax.Grammar || s.Parameters != nil {
		t.Errorf("freeform: %+v", s)
	}
	if s := (&Patch{}).Spec(); s.Kind != protocol.CallFunction || s.Grammar != "" || !json.Valid(s.Parameters) || !strings.Contains(s.Description, "*** Begin Patch") {
		t.Errorf("function: %+v", s)
	}
}

// The model gets words with which it can mend the patch; nothing is recorded.
func TestPatchThatDoesNotFit(t *testing.T) {
	dir, h := realDir(t), &fakeHost{}
	put(t, dir, "a", "one\n")
	for text, want := range map[string]string{
		`{"input":`:              "failed to parse function arguments",
		"nonsense":               "error: ",
		update("a", "two", "x"):  "error: patch line",
		update("no", "two", "x"): "error: patch line",
	} {
		res := (&Patch{}).Run(t.Context(), patchCall(h, dir, text))
		if !res.Output.Failed || !strings.HasPrefix(res.Output.Output, want) {
			t.Errorf("%q: %+v", text, res.Output)
		}
	}
	if len(h.events) > 0 {
		t.Errorf("recorded: %v", h.events)
	}
	wantFiles(t, dir, map[string]string{"a": "one\n"})
}

// What is recorded comes before what is done: at the first record nothing is
// there, at the second nothing that anybody looks at.
func TestPatchIsRecordedFirst(t *testing.T) {
	dir := realDir(t)
	h := &watchingHost{look: func() string { return fmt.Sprint(files(t, dir)) }}
	c := patchCall(h, dir, add("a"))
	c.Grant, c.Asked = protocol.Approved, json.RawMessage(fmt.Sprintf(`{ %q: {"add":{"content":"a\n"}}}`, filepath.Join(dir, "a")))
	(&Patch{}).Run(t.Context(), c)
	if len(h.events) != 2 {
		t.Fatalf("events %v", h.events)
	}
	s, ok := h.events[0].(*protocol.PatchStarted)
	if !ok || s.Call != c.ID || s.Cwd != dir || s.Patch == "" || s.AutoApproved || string(s.Changes) != fmt.Sprintf(`{%q:{"add":{"content":"a\n"}}}`, filepath.Join(dir, "a")) {
		t.Errorf("first event %+v", h.events[0])
	}
	if h.seen[0] != "map[]" {
		t.Errorf("written before it was recorded: %s", h.seen[0])
	}
	if done, ok := h.events[1].(*protocol.PatchCommitted); !ok || done.Patch != s.Patch || done.Call != c.ID {
		t.Errorf("second event %+v", h.events[1])
	}
	if strings.Contains(h.seen[1], "map[a:") || !strings.Contains(h.seen[1], ".fermata-"+s.Patch) {
		t.Errorf("at the commit there is %s", h.seen[1])
	}
}

// A watchingHost looks at the world at each record, and can fail one.
type watchingHost struct {
	fakeHost
	look   func() string
	failAt int // 1 for the first
	err    error
	seen   []string
}

func (h *watchingHost) Record(ctx context.Context, b protocol.Body) error {
	if h.look != nil {
		h.seen = append(h.seen, h.look())
	}
	_ = h.fakeHost.Record(ctx, b)
	if len(h.events) == h.failAt {
		return h.err
	}
	return nil
}

func TestPatchThatCannotBeRecorded(t *testing.T) {
	for _, at := range []int{1, 2} {
		dir := realDir(t)
		h := &watchingHost{failAt: at, err: errors.New("disk full")}
		res := (&Patch{}).Run(t.Context(), patchCall(h, dir, add("a", "b")))
		if !strings.Contains(res.Output.Output, "disk full\nNothing was applied.") || res.Output.Patch == nil || res.Output.Patch.Applied || res.Output.Patch.Unsettled {
			t.Errorf("record %d fails: %+v", at, res.Output)
		}
		wantFiles(t, dir, map[string]string{})
	}
}

// A lameFS can prepare everything, and then neither go on nor back.
type lameFS struct{ patch.OS }

func (lameFS) Rename(string, string) error { return errors.New("disk gone") }
func (lameFS) Remove(string) error         { return errors.New("disk gone") }

// When it is not known what became of a patch, nobody says that it is.
func TestPatchThatIsNotSettled(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "a", "1\n")
	res := (&Patch{Files: lameFS{}, Changes: &Changes{}}).Run(t.Context(), patchCall(&fakeHost{}, dir, update("a", "1", "2")))
	if r := res.Output.Patch; !res.Output.Failed || r == nil || r.Applied || !r.Unsettled || res.Diff != nil ||
		strings.Contains(res.Output.Output, "Nothing was applied") {
		t.Errorf("output %+v, patch %+v", res.Output, r)
	}
}

// A stop before the decision leaves nothing, and one after it everything.
func TestPatchStopped(t *testing.T) {
	for _, at := range []int{1, 2} {
		dir := realDir(t)
		ctx, cancel := context.WithCancel(t.Context())
		h := &watchingHost{}
		h.look = func() string {
			if len(h.events)+1 == at {
				cancel()
			}
			return ""
		}
		res := (&Patch{Changes: &Changes{}}).Run(ctx, patchCall(h, dir, add("a", "b")))
		if at == 1 {
			if !res.Output.Aborted || res.Output.Patch == nil || res.Output.Patch.Applied || res.Diff != nil {
				t.Errorf("stopped early: %+v", res)
			}
			wantFiles(t, dir, map[string]string{})
			continue
		}
		if res.Output.Aborted || !res.Output.Patch.Applied || res.Diff == nil {
			t.Errorf("stopped late: %+v", res)
		}
		wantFiles(t, dir, map[string]string{"a": "a\n", "b": "b\n"})
	}
}

func TestPatchApproval(t *testing.T) {
	out := elsewhere(t)
	const applied, asks, refused = "applied", "asks", "refused"
	for _, tt := range []struct {
		approval protocol.ApprovalPolicy
		mode     protocol.SandboxMode
		inside   string
		outside  string
	}{
		{protocol.ApprovalUntrusted, protocol.SandboxWorkspaceWrite, asks, asks},
		{protocol.ApprovalOnRequest, protocol.SandboxWorkspaceWrite, applied, asks},
		{protocol.ApprovalOnFailure, protocol.SandboxWorkspaceWrite, applied, asks},
		{protocol.ApprovalNever, protocol.SandboxWorkspaceWrite, applied, refused},
		{protocol.ApprovalOnRequest, protocol.SandboxReadOnly, asks, asks},
		{protocol.ApprovalNever, protocol.SandboxReadOnly, refused, refused},
		{protocol.ApprovalNever, protocol.SandboxFullAccess, applied, applied},
	} {
		for where, want := range map[string]string{"in": tt.inside, filepath.Join(out, "out"): tt.outside} {
			dir := realDir(t)
			os.Remove(filepath.Join(out, "out"))
			h := &fakeHost{}
			c := patchCall(h, dir, add(where))
			c.Settings.Approval, c.Settings.Sandbox.Mode = tt.approval, tt.mode
			res := (&Patch{}).Run(t.Context(), c)
			got := applied
			switch {
			case res.Ask != nil:
				got = asks
			case res.Output.Failed:
				got = refused
			}
			if _, err := os.Stat(within(dir, where)); got != want || (err == nil) != (got == applied) {
				t.Errorf("%s, %s, %s: %s, want %s (%v)", tt.approval, tt.mode, where, got, want, err)
			}
			if got != asks {
				continue
			}
			if a := res.Ask; a.Kind != protocol.ApprovePatch || !strings.Contains(string(a.Detail), where) || a.Reason == "" || len(h.events) > 0 {
				t.Errorf("asked %+v, recorded %v", a, h.events)
			}
			c.Grant, c.Asked = protocol.Approved, res.Ask.Detail
			if res := (&Patch{}).Run(t.Context(), c); res.Ask != nil || !res.Output.Patch.Applied {
				t.Errorf("approved: %+v", res)
			}
		}
	}
}

// A yes is for what was shown. If a file has changed since, it is asked again.
func TestPatchApprovalIsForWhatWasShown(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "a", "1\nx\n")
	c := patchCall(&fakeHost{}, dir, begin("*** Delete File: a\n*** Add File: b\n+b\n"))
	c.Settings.Approval = protocol.ApprovalUntrusted
	c.Asked = (&Patch{}).Run(t.Context(), c).Ask.Detail
	c.Grant = protocol.Approved
	put(t, dir, "b", "somebody's\n")
	again := (&Patch{}).Run(t.Context(), c)
	if again.Ask == nil || !strings.Contains(string(again.Ask.Detail), "somebody's") {
		t.Fatalf("b would be overwritten: %+v", again)
	}
	c.Asked = again.Ask.Detail
	if res := (&Patch{}).Run(t.Context(), c); res.Ask != nil || !res.Output.Patch.Applied {
		t.Errorf("approved again: %+v", res)
	}
	wantFiles(t, dir, map[string]string{"b": "b\n"})
}

// A link in the workspace does not lead out of it unasked, and neither may
// fermata's own directory, git's or the whole file system be written.
func TestPatchStaysInside(t *testing.T) {
	dir, out := realDir(t), elsewhere(t)
	if err := os.Symlink(out, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link/a", ".git/hooks/pre-commit", "home/config", "../a"} {
		c := patchCall(&fakeHost{}, dir, add(name))
		if res := (&Patch{Home: filepath.Join(dir, "home")}).Run(t.Context(), c); res.Ask == nil {
			t.Errorf("%s is written unasked", name)
		}
	}
	c := patchCall(&fakeHost{}, "/", add(filepath.Join(out, "a")))
	if res := (&Patch{}).Run(t.Context(), c); res.Ask == nil {
		t.Error("with / as the working directory everything is written unasked")
	}
	c = patchCall(&fakeHost{}, filepath.Join(dir, "link"), add("a"))
	if res := (&Patch{}).Run(t.Context(), c); res.Ask == nil {
		t.Error("a working directory that is a link opens what it leads to")
	}
	wantFiles(t, out, map[string]string{})
}

// What fermata reads or executes later is not changed unasked either, wherever the links of its
// home lead: a patch would be a way out of the sandbox.
func TestPatchPlantsNothing(t *testing.T) {
	dir, home := realDir(t), realDir(t)
	for _, name := range []string{"dot", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "dot/config.toml", "# mine\n")
	put(t, dir, "bin/notify", "good\n")
	for link, to := range map[string]string{
		filepath.Join(home, "config.toml"): filepath.Join(dir, "dot/config.toml"),
		filepath.Join(home, "rules"):       filepath.Join(dir, "nowhere/rules"),
		filepath.Join(dir, "linked"):       home,
		filepath.Join(dir, "program"):      "bin/notify",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	p := &Patch{Home: filepath.Join(dir, "linked"), OtherHomes: []string{filepath.Join(dir, "other")}, Guarded: []string{filepath.Join(dir, "program")}}
	for _, name := range []string{"dot/config.toml", "nowhere/rules", "other/config.toml", "bin/notify", "program", "linked/new"} {
		if res := p.Run(t.Context(), patchCall(&fakeHost{}, dir, add(name))); res.Ask == nil {
			t.Errorf("%s is written unasked: %s", name, res.Output.Output)
		}
	}
	for _, name := range []string{"dot/other", "bin/other"} {
		if res := p.Run(t.Context(), patchCall(&fakeHost{}, dir, add(name))); res.Ask != nil || res.Output.Failed {
			t.Errorf("%s is not written: %s", name, res.Output.Output)
		}
	}
}

// The diff of the turn is the sum of its patches.
func TestTurnDiffIsTheSum(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "a", "1\n")
	p := &Patch{Changes: &Changes{}}
	var last Result
	for _, text := range []string{update("a", "1", "2"), add("b"), update("a", "2", "3"), begin("*** Delete File: b\n")} {
		if last = p.Run(t.Context(), patchCall(&fakeHost{}, dir, text)); last.Output.Failed {
			t.Fatalf("%s: %+v", text, last.Output)
		}
	}
	want := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+3\n"
	if d := cmp.Diff(want, last.Diff.Diff); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A turn that is taken up by another process goes on with its diff.
func TestTurnDiffIsTakenUp(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "a", "1\n")
	c := patchCall(&fakeHost{}, dir, update("a", "2", "3"))
	c.Patches = history(t, dir, update("a", "1", "2"), add("b"))
	p := &Patch{Changes: &Changes{}}
	if got := p.Run(t.Context(), c); !strings.Contains(got.Diff.Diff, "-1\n+3\n") || !strings.Contains(got.Diff.Diff, "b/b") {
		t.Errorf("diff %+v", got.Diff)
	}
	c.Arguments = update("a", "3", "4") // and then knows better than the record
	if got := p.Run(t.Context(), c); !strings.Contains(got.Diff.Diff, "-1\n+4\n") {
		t.Errorf("diff %+v", got.Diff)
	}
	put(t, dir, "b", "mine\n")
	c.Arguments = update("a", "4", "5")
	if got := (&Patch{Changes: &Changes{}}).Run(t.Context(), c); !strings.Contains(got.Diff.Diff, "-4\n+5\n") {
		t.Errorf("diff after somebody else's change %+v", got.Diff)
	}
}

func TestSettlePatch(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "a", "1\n")
	parsed, err := syntax.Parse(update("a", "1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := patch.Verify(t.Context(), patch.OS{}, dir, parsed)
	if err != nil {
		t.Fatal(err)
	}
	for _, committed := range []bool{false, true} {
		rec := plan.Record()
		// The state at the commit: all is ready, nothing is renamed.
		put(t, dir, filepath.Base(rec.Steps[0].New), "2\n")
		if err := os.Link(filepath.Join(dir, "a"), rec.Steps[0].Old); err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(rec)
		applied, note, err := SettlePatch(raw, committed)
		if applied != committed || note != "" || err != nil {
			t.Errorf("committed %t: applied %t, %q, %v", committed, applied, note, err)
		}
		wantFiles(t, dir, map[string]string{"a": map[bool]string{false: "1\n", true: "2\n"}[committed]})
	}
	if _, _, err := SettlePatch(json.RawMessage("7"), true); err == nil {
		t.Error("a record that is none is settled")
	}
}

// A patch that does not fit shows the text that is nearest to what it looked for, but
// not of a file with secrets, under any name.
func TestPatchShowsNoSecrets(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "auth.json", "key = sk-secret\n")
	if err := os.Symlink("auth.json", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tool := &Patch{Secret: func(path string) bool { return filepath.Base(path) == "auth.json" }}
	for _, name := range []string{"auth.json", "link", filepath.Join(dir, "auth.json")} {
		for _, text := range []string{update(name, "key = sk-other", "x"), begin("*** Delete File: " + name + "\n"), add(name)} {
			res := tool.Run(t.Context(), patchCall(&fakeHost{}, dir, text))
			if !res.Output.Failed && name != "link" || strings.Contains(res.Output.Output, "sk-secret") || res.Output.Patch != nil && strings.Contains(res.Output.Patch.Diff, "sk-secret") {
				t.Errorf("%s: %+v", name, res.Output)
			}
		}
		put(t, dir, "auth.json", "key = sk-secret\n")
	}
}
