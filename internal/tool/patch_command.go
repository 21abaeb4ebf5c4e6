package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc/socket"
	"github.com/fermata-agent/fermata/protocol"
)

// A patchDesk applies the patches of one command, whose processes ask for them by
// running apply_patch (see package shim). It does so while the call that started the
// command runs, one patch at a time. A patch may write what the command itself may: for
// more the model has to call the tool, and the user is asked.
type patchDesk struct {
	patch  *Patch
	call   Call          // what is in force for the command
	slot   chan struct{} // holds one value while no patch is applied; close keeps it
	closed chan struct{}

	// Whoever has the value of slot uses these.
	applied int
	refused string // why a patch would have needed an approval
}

const (
	askLimit    = 10 * time.Second // for a request to arrive, and for its answer to be taken
	maxAskText  = 32 << 10
	maxAskBytes = socket.MaxPatch + 64<<10 // a patch and a directory
)

// openDesk lets a command apply patches. A command that runs unasked because it only
// looks at things, and one that no server can serve, get none.
func (s *Shell) openDesk(ctx context.Context, call Call, l *launch) {
	if s.Patch == nil || s.CommandDir == nil || l.ruling.Harden {
		return
	}
	env, ok := withCommands(l.spec.Env, s.CommandDir())
	if !ok {
		return
	}
	call.inCommand, call.Grant, call.Asked = true, "", nil
	call.Settings.Sandbox.Mode = l.ruling.Mode
	if l.ruling.Verdict == policy.RunUnconfined {
		call.Settings.Sandbox.Mode = protocol.SandboxFullAccess
	}
	if call.Settings.Approval == protocol.ApprovalUntrusted {
		call.Settings.Approval = protocol.ApprovalOnRequest // the command that asks was approved
	}
	d := &patchDesk{patch: s.Patch, call: call, slot: make(chan struct{}, 1), closed: make(chan struct{})}
	d.slot <- struct{}{}
	l.desk, l.spec.Env = d, env
	l.spec.Serve = func(conn *os.File) { d.serve(ctx, conn) }
}

// withCommands puts a directory in front of the PATH of an environment. A profile may
// set another PATH, so a shell that reads one gets the command as a function as well.
func withCommands(env []string, dir string) ([]string, bool) {
	if dir == "" || strings.ContainsAny(dir, string(filepath.ListSeparator)+"'") {
		return env, false
	}
	for i := len(env) - 1; i >= 0; i-- { // the last one counts
		if path, ok := strings.CutPrefix(env[i], "PATH="); ok && path != "" {
			return append(env[:len(env):len(env)],
				"PATH="+dir+string(filepath.ListSeparator)+path,
				"BASH_FUNC_apply_patch%%=() { '"+filepath.Join(dir, "apply_patch")+"' \"$@\"; }"), true
		}
	}
	return env, false
}

// serve answers one process. It may be anything that the command runs.
func (d *patchDesk) serve(ctx context.Context, conn *os.File) {
	_ = conn.SetDeadline(time.Now().Add(askLimit)) // a connection that is closed says so below
	request, err := io.ReadAll(io.LimitReader(conn, maxAskBytes+1))
	if err != nil {
		return
	}
	answer := d.answer(ctx, request)
	if len(answer.Text) > maxAskText {
		answer.Text = strings.ToValidUTF8(answer.Text[:maxAskText], "") + "\n…"
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	_, _ = conn.Write(text) // who does not wait for the answer does not want it
}

func (d *patchDesk) answer(ctx context.Context, request []byte) socket.PatchAnswer {
	dir, text, ok := bytes.Cut(request, []byte{0})
	switch {
	case len(request) > maxAskBytes:
		return socket.PatchAnswer{ExitCode: 1, Text: fmt.Sprintf("the patch is larger than %d MiB\nNothing was applied.", socket.MaxPatch>>20)}
	case !ok || !filepath.IsAbs(string(dir)):
		return socket.PatchAnswer{ExitCode: 2, Text: "not a request for a patch"}
	}
	select {
	case <-d.slot:
	case <-d.closed:
		return socket.PatchAnswer{ExitCode: 1, Text: "the command runs in the background, where it cannot apply patches; call the tool apply_patch\nNothing was applied."}
	case <-ctx.Done():
		return socket.PatchAnswer{ExitCode: 1, Text: "interrupted\nNothing was applied."}
	}
	defer func() { d.slot <- struct{}{} }()
	res := d.patch.apply(ctx, d.call, string(text), string(dir))
	switch {
	case res.Ask != nil:
		d.refused = res.Ask.Reason
		return socket.PatchAnswer{ExitCode: 1, Text: "the patch was not applied: " + res.Ask.Reason + ". Call the tool apply_patch with this patch instead of the command: then the user is asked."}
	case res.Output.Failed:
		return socket.PatchAnswer{ExitCode: 1, Text: res.Output.Output}
	case res.Output.Aborted:
		return socket.PatchAnswer{ExitCode: 1, Text: "interrupted\nNothing was applied."}
	}
	d.applied++
	return socket.PatchAnswer{Text: res.Output.Output}
}

// close ends the service: a patch that is being applied is finished first. Nil is
// fine, and so is calling it again.
func (d *patchDesk) close() {
	if d == nil {
		return
	}
	select {
	case <-d.slot:
		close(d.closed)
	case <-d.closed:
	}
}

// diff returns what the turn has changed so far if a command changed that, by itself
// or by a patch. The desk must be closed.
func (d *patchDesk) diff(ctx context.Context, call Call, c *Changes) *protocol.TurnDiff {
	if d != nil && d.applied > 0 {
		return c.diff(ctx, call)
	}
	return c.ran(ctx, call)
}

// refusal says why a patch would have needed an approval, "" if none did. The desk
// must be closed.
func (d *patchDesk) refusal() string {
	if d == nil {
		return ""
	}
	return d.refused
}

// settle records what became of a patch that a command applied: its call is answered
// for the command. After an IncompleteError the next one to open the conversation
// does it.
func settle(ctx context.Context, call Call, rec patch.Record, applied bool) {
	_ = call.Host.Record(context.WithoutCancel(ctx), &protocol.PatchSettled{Patch: rec.ID, Applied: applied}) // what is not recorded is settled when the conversation is opened again
}
