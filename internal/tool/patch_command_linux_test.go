package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/protocol"
)

// patchingTerminal is exec_command with the command apply_patch, which is the test
// binary under that name.
func patchingTerminal(t *testing.T) *Exec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "apply_patch")); err != nil {
		t.Fatal(err)
	}
	e := terminal(t)
	e.Shell.Changes = &Changes{}
	e.Shell.Patch = &Patch{Changes: e.Shell.Changes}
	e.Shell.CommandDir = func() string { return dir }
	return e
}

func heredoc(text string) string { return "apply_patch <<'EOF'\n" + text + "EOF\n" }

// events are the kinds of what was recorded.
func (h *termHost) kinds() (kinds []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.events {
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", b), "*protocol."))
	}
	return kinds
}

func TestApplyPatchInAScript(t *testing.T) {
	needSandbox(t)
	for _, mode := range []protocol.SandboxMode{protocol.SandboxFullAccess, protocol.SandboxWorkspaceWrite} {
		for _, pids := range []bool{false, true} {
			if !longtest.On() && pids != (mode == protocol.SandboxWorkspaceWrite) {
				continue // a plain run has each of both once
			}
			t.Run(fmt.Sprintf("%s, own pids %v", mode, pids), func(t *testing.T) {
				dir, h := realDir(t), &termHost{}
				if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
					t.Fatal(err)
				}
				e := patchingTerminal(t)
				e.Shell.PIDNamespace = pids
				script := "set -e\necho before\n" + heredoc(add("a")) + "cd sub\n(" + heredoc(add("b")) + ") | cat\napply_patch \"$(cat <<'EOF'\n" +
					update("../a", "a", "A") + "EOF\n)\"\n! echo junk | apply_patch\necho after\n"
				res := e.Run(t.Context(), under(on(h, dir, script, params{"tty": false}), protocol.ApprovalOnRequest, mode))
				if res.Output.Failed {
					t.Fatalf("got %+v", res.Output)
				}
				_, text := told(t, res.Output)
				for _, want := range []string{"before\n", "A a\n", "A b\n", "M ../a\n", "Nothing was applied", "after\n"} {
					if !strings.Contains(text, want) {
						t.Errorf("the output has no %q: %s", want, text)
					}
				}
				wantFiles(t, dir, map[string]string{"a": "A\n", "sub/b": "b\n"})
				want := []string{"CommandStarted"}
				for range 3 {
					want = append(want, "PatchStarted", "PatchCommitted", "PatchSettled")
				}
				got := slices.DeleteFunc(h.kinds(), func(s string) bool { return s == "Notice" })
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
				if res.Diff == nil || !strings.Contains(res.Diff.Diff, "+A\n") {
					t.Errorf("the diff of the turn is %+v", res.Diff)
				}
				takeBack(t, h.backs())
				wantFiles(t, dir, map[string]string{})
			})
		}
	}
}

// backs are what the patches keep to be undone.
func (h *termHost) backs() (list []json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.events {
		if b, ok := b.(*protocol.PatchStarted); ok {
			list = append(list, b.Back)
		}
	}
	return list
}

// A patch of a command may write what the command may, and no more.
func TestApplyPatchObeysTheSandbox(t *testing.T) {
	needSandbox(t)
	for _, tt := range []struct {
		name     string
		approval protocol.ApprovalPolicy
		mode     protocol.SandboxMode
		grant    protocol.Decision
		outside  bool
		want     string // in the output; "" if the patch is applied
		asks     string
	}{
		{name: "inside", approval: protocol.ApprovalNever, mode: protocol.SandboxWorkspaceWrite},
		{name: "outside, never", approval: protocol.ApprovalNever, mode: protocol.SandboxWorkspaceWrite, outside: true, want: "no approval may be requested"},
		{name: "outside", approval: protocol.ApprovalOnRequest, mode: protocol.SandboxWorkspaceWrite, outside: true, want: "then the user is asked"},
		{name: "read-only", approval: protocol.ApprovalOnRequest, mode: protocol.SandboxReadOnly, want: "then the user is asked"},
		{name: "read-only, never", approval: protocol.ApprovalNever, mode: protocol.SandboxReadOnly, want: "no approval may be requested"},
		{name: "read-only, on failure", approval: protocol.ApprovalOnFailure, mode: protocol.SandboxReadOnly, asks: "unasked"},
		{name: "read-only, approved", approval: protocol.ApprovalOnRequest, mode: protocol.SandboxReadOnly, grant: protocol.Approved, outside: true},
		{name: "untrusted, approved", approval: protocol.ApprovalUntrusted, mode: protocol.SandboxWorkspaceWrite, grant: protocol.Approved, outside: true},
		{name: "anything", approval: protocol.ApprovalNever, mode: protocol.SandboxFullAccess, outside: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, target, h := realDir(t), "here", &termHost{}
			if tt.outside {
				target = filepath.Join(elsewhere(t), "there")
			}
			c := under(on(h, dir, "echo; "+heredoc(add(target)), params{"tty": false}), tt.approval, tt.mode)
			c.Grant = tt.grant
			res := patchingTerminal(t).Run(t.Context(), c)
			asked := ""
			if res.Ask != nil {
				asked = res.Ask.Reason
			}
			applied := exists(within(dir, target))
			if applied != (tt.want+tt.asks == "") || !strings.Contains(res.Output.Output, tt.want) || !strings.Contains(asked, tt.asks) || (asked != "") != (tt.asks != "") {
				t.Errorf("applied %v, asked %q, got %+v", applied, asked, res.Output)
			}
		})
	}
}

// Two at once are applied one after the other, none lost.
func TestApplyPatchTogether(t *testing.T) {
	dir, h := realDir(t), &termHost{}
	put(t, dir, "f", "")
	var script strings.Builder
	want := map[string]string{}
	for i := range 8 {
		name := fmt.Sprintf("new%d", i)
		fmt.Fprintf(&script, "(%s) &\n", heredoc(add(name)))
		want[name] = name + "\n"
	}
	want["f"] = ""
	res := patchingTerminal(t).Run(t.Context(), on(h, dir, script.String()+"wait", params{"tty": false}))
	if res.Output.Failed {
		t.Errorf("got %+v", res.Output)
	}
	wantFiles(t, dir, want)
	if n := len(h.backs()); n != 8 {
		t.Errorf("%d patches were recorded", n)
	}
}

// A command that has become a background command applies nothing: its call is
// answered, and what it did could not be undone with its turn.
func TestApplyPatchInTheBackground(t *testing.T) {
	dir, h := realDir(t), &termHost{}
	e := patchingTerminal(t)
	res := e.Run(t.Context(), on(h, dir, "read line; "+heredoc(add("late"))+"echo code $?", params{"yield_time_ms": 0}))
	if len(h.jobs) != 1 {
		t.Fatalf("not a background command: %+v", res.Output)
	}
	WriteStdin{}.Run(t.Context(), typing(h, "\n", 0))
	all, _ := readUntil(t, h, "code 1")
	h.jobs[0].Wait()
	if !strings.Contains(all, "runs in the background") {
		t.Errorf("got %q", all)
	}
	wantFiles(t, dir, map[string]string{})
}

// stopAt is a host that interrupts the call when a patch reaches a step.
type stopAt struct {
	*termHost
	at     string
	cancel context.CancelCauseFunc
}

func (h *stopAt) Record(ctx context.Context, b protocol.Body) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := h.termHost.Record(ctx, b)
	if kinds := h.kinds(); kinds[len(kinds)-1] == h.at {
		h.cancel(errors.New("stopped"))
	}
	return err
}

// An interrupt before the commit leaves nothing, after it everything, and the record
// says which.
func TestInterruptInApplyPatch(t *testing.T) {
	for at, want := range map[string]map[string]string{
		"PatchStarted":   {},
		"PatchCommitted": {"a": "a\n", "b": "b\n"},
	} {
		t.Run(at, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			dir := realDir(t)
			h := &stopAt{&termHost{}, at, cancel}
			c := on(h.termHost, dir, heredoc(add("a", "b"))+"sleep 1000", params{"tty": false, "yield_time_ms": 100_000})
			c.Arguments = strings.Replace(c.Arguments, `"cmd":"`, `"cmd":"echo; `, 1) // not only a patch
			c.Host = h
			res := patchingTerminal(t).Run(ctx, c)
			if !res.Output.Aborted {
				t.Errorf("got %+v", res.Output)
			}
			wantFiles(t, dir, want)
			last, ok := h.events[len(h.events)-1].(*protocol.PatchSettled)
			if !ok || last.Applied != (len(want) > 0) {
				t.Errorf("the last record is %+v", h.events[len(h.events)-1])
			}
		})
	}
}

// Garbage, a request that is too large and one that never ends harm nobody.
func TestHostileRequestsForPatches(t *testing.T) {
	for name, script := range map[string]string{
		"garbage":       "head -c 100000 /dev/urandom >&$FERMATA_SOCKET",
		"too large":     "head -c 6000000 /dev/zero | tr '\\0' x | apply_patch",
		"not a patch":   "echo '*** Begin Patch' | apply_patch",
		"no directory":  "mkdir d && cd d && rmdir ../d && " + heredoc(add("../x")),
		"a pipe in it":  "mkfifo p && " + heredoc(update("p", "a", "b")),
		"no descriptor": "FERMATA_SOCKET=77 " + heredoc(add("x")),
		"another one":   "FERMATA_SOCKET=1 " + heredoc(add("x")),
	} {
		t.Run(name, func(t *testing.T) {
			dir, h := realDir(t), &termHost{}
			res := patchingTerminal(t).Run(t.Context(), on(h, dir, "trap '' PIPE\n"+script+"\necho code $?", params{"tty": false}))
			if _, text := told(t, res.Output); !strings.Contains(text, "code ") || name != "garbage" && strings.Contains(text, "code 0") {
				t.Errorf("got %s", text)
			}
			if exists(dir, "x") {
				t.Error("something was applied")
			}
		})
	}
}

// A file system that breaks in the middle of a patch is left to the next open.
func TestApplyPatchThatIsIncomplete(t *testing.T) {
	dir, h := realDir(t), &termHost{}
	put(t, dir, "a", "a\n")
	e := patchingTerminal(t)
	e.Shell.Patch.Files = lameFS{patch.OS{}}
	e.Run(t.Context(), on(h, dir, "echo; "+heredoc(update("a", "a", "b")), params{"tty": false}))
	if slices.Contains(h.kinds(), "PatchSettled") {
		t.Error("settled, although nobody knows how it went")
	}
}

// A request that is too large is refused whole: the part of it that was read may be a patch as well.
func TestRequestForAPatchThatIsTooLarge(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := append([]byte("/w\x00"), bytes.Repeat([]byte("x"), maxAskBytes)...)
	if got := new(patchDesk).answer(ctx, request); got.ExitCode != 1 || !strings.Contains(got.Text, "larger than 4 MiB") {
		t.Errorf("%+v", got)
	}
}
