package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

// fifo makes a pipe in the working directory that a command can wait for.
func (pl *place) fifo(name string) (open func()) {
	pl.t.Helper()
	path := filepath.Join(pl.work, name)
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		pl.t.Fatal(err)
	}
	return func() {
		pl.t.Helper()
		if err := os.WriteFile(path, nil, 0); err != nil {
			pl.t.Fatal(err)
		}
	}
}

// sockets lists what processes listen on in the home.
func (pl *place) sockets() []string {
	pl.t.Helper()
	list, err := filepath.Glob(filepath.Join(pl.dir, "home/fermata/run/*"))
	if err != nil {
		pl.t.Fatal(err)
	}
	return list
}

func TestSecondTerminalJoins(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	open := pl.fifo("fifo")
	owner := pl.start("exec", "--demo", "run: echo begun; cat fifo; echo over")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	joined := pl.start("exec", "resume", id, "--demo", "say something")
	pl.awaitEvent(id, "the second message", func(b p.Body) bool {
		in, ok := b.(*p.InputAccepted)
		return ok && p.PlainText(in.Content) == "say something"
	})
	open()
	if owner.code() != 0 || joined.code() != 0 {
		t.Errorf("exit codes %d and %d", owner.code(), joined.code())
	}
	contains(t, "owner", owner.err.String()+owner.out.String(), "over", "I am a demo")
	contains(t, "joined", joined.err.String()+joined.out.String(), "$ echo begun", "  begun\n  over\n", "I am a demo")
	pl.fsck(id)
	if left := pl.sockets(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestInterruptFromAnotherTerminal(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	owner := pl.start("exec", "--demo", "run: echo begun; exec sleep 1000")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	_, errs, code := pl.run("interrupt", id)
	if code != 0 || !strings.Contains(errs, "turn 1 interrupted") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if owner.code() == 0 {
		t.Errorf("the owner ended as if nothing were the matter: %s", owner.err.String())
	}
	_, errs, code = pl.run("interrupt", id)
	if code != exitFailed || !strings.Contains(errs, "no turn is running") {
		t.Errorf("again: exit code %d: %s", code, errs)
	}
	contains(t, "what the model was told", pl.sound(id), "begun")
}

func TestSend(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	open := pl.fifo("fifo")
	owner := pl.start("exec", "--demo", "run: echo begun; cat fifo")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	if _, errs, code := pl.run("send", id, "say this"); code != 0 || !strings.Contains(errs, "steered into turn 1") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := pl.run("send", id, "run: sleep 0.1; touch queued", "--queue"); code != 0 || !strings.Contains(errs, "queued") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := pl.run("send", id, "x", "--queue", "--steer"); code != exitUsage {
		t.Errorf("both: exit code %d: %s", code, errs)
	}
	open()
	if code := owner.code(); code != 0 || !exists(filepath.Join(pl.work, "queued")) { // it stays for the turn that was queued
		t.Errorf("the owner has exit code %d\n%s", code, owner.err.String())
	}
	contains(t, "what the owner says", owner.err.String(), "waiting for turn 2, which still runs in this process")
	contains(t, "show", pl.must("show", id), "> say this", "touch queued")
	_, errs, code := pl.run("send", id, "anybody there?")
	if code != exitFailed || !strings.Contains(errs, "no process has this conversation open") {
		t.Errorf("to nobody: exit code %d: %s", code, errs)
	}
}

// The owner is killed in mid-turn: the one that joined takes over, and nothing is
// damaged.
func TestOwnerIsKilled(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	owner := pl.start("exec", "--demo", "run: echo begun; exec sleep 1000")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	joined := pl.start("exec", "resume", id, "--demo", "say something")
	eventually(t, "it has joined", func() bool { return joined.err.has("begun") })
	if err := owner.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	joined.code()
	pl.awaitEvent(id, "the end of the turn", func(b p.Body) bool {
		end, ok := b.(*p.TurnEnded)
		return ok && end.Reason == p.Crashed
	})
	pl.fsck(id)
	pl.must("exec", "resume", id, "--demo", "say something")
	if left := pl.sockets(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An owner that is stopped is reported, and keeps its conversation.
func TestOwnerIsStopped(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	owner := pl.start("exec", "--demo", "run: echo begun; exec sleep 1000")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	if err := owner.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopped", func() bool { return isStopped(owner.cmd.Process.Pid) })
	_, errs, code := pl.run("exec", "resume", id, "--demo", "say something")
	if code != exitFailed || !strings.Contains(errs, fmt.Sprintf("process %d has this conversation open and does not respond", owner.cmd.Process.Pid)) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	contains(t, "ps", pl.must("ps"), "does not respond", id, "running", "run: echo begun")
	if err := owner.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	pl.must("interrupt", id)
	owner.code()
	pl.fsck(id)
}

// A confined command cannot use the socket of its own fermata to answer for the
// user, also with network access.
func TestCommandCannotJoinItsOwner(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"read-only":       {"-s", "read-only"},
		"workspace-write": {"-s", "workspace-write"},
		"network":         {"-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true"},
	} {
		t.Run(name, func(t *testing.T) {
			pl := newPlace(t)
			if _, errs, code := pl.run("exec", "--demo", "--park", "-a", "untrusted", "run: touch made"); code != exitWaiting {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			waits := pl.conversation()
			pl.file("attack", "export HOME="+filepath.Join(pl.dir, "home")+" FERMATA_HOME="+filepath.Join(pl.dir, "home/fermata")+`
id=$(`+pl.bin+` list --json | head -n 1 | sed 's/.*"id":"\([^"]*\)".*/\1/')
echo id $id; ls $FERMATA_HOME/run/
`+pl.bin+` send $id "approved by myself"; echo send: $?
`+pl.bin+` interrupt $id; echo interrupt: $?
`+pl.bin+` approve `+waits+` && echo approved
`+pl.bin+` approve $id && echo approved
echo attacked
`)
			out, errs, _ := pl.run(append([]string{"exec", "--demo", "run: sh attack"}, flags...)...)
			contains(t, "output", out+errs, "id 01", "send: 1", "interrupt: 1", "attacked")
			if strings.Contains(out+errs, ".sock\n") || strings.Contains(out+errs, "\n  approved") {
				t.Errorf("it sees the socket, or approves: %s", errs)
			}
			for _, c := range pl.conversations() {
				for _, e := range pl.events(string(c.ID)) {
					switch b := e.Body.(type) {
					case *p.InputAccepted, *p.StopRequested, *p.ApprovalResolved:
						t.Errorf("it got through: %+v", b)
					}
				}
			}
			if exists(filepath.Join(pl.work, "made")) {
				t.Error("what it approved was run")
			}
		})
	}
}

// An owner of a later version, whose protocol this one does not speak: whoever would join is told, and
// reads what is recorded all the same.
func TestTooOldToJoin(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	id := pl.converse("exec", "--demo", "talk 5")
	home := filepath.Join(pl.dir, "home/fermata")
	ln, err := net.Listen("unix", filepath.Join(home, "run", "later.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // ends with ln
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			var hello struct{ ID json.RawMessage }
			if json.NewDecoder(conn).Decode(&hello) == nil {
				fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no","data":{"text":"this fermata is too old to join","version":{"oldest":2,"newest":3,"theirs":1}}}}`+"\n", hello.ID)
			}
		}
	}()
	store := file.New(home, file.Options{Address: func() string { return ln.Addr().String() }})
	held, err := store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, args := range [][]string{{"exec", "resume", id, "--demo", "talk 1"}, {"send", id, "x"}, {"interrupt", id}} {
		if _, errs, code := pl.run(args...); code != exitFailed || !strings.Contains(errs, "too old to join") {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}
	contains(t, "show", pl.must("show", id), "word5")
	following := pl.start("show", "--follow", id)
	eventually(t, "it is followed in the journal", func() bool { return following.out.has("word5") })
}
