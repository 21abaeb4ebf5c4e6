package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/nats-io/nats-server/v2/server"
)

// runningID returns the conversation in which a turn runs somewhere.
func (m *machine) runningID() string {
	m.t.Helper()
	ps := m.must("ps")
	for line := range strings.Lines(ps) {
		if strings.Contains(line, "running") {
			return strings.Fields(line)[0]
		}
	}
	m.t.Fatalf("nothing runs: %s", ps)
	return ""
}

// interrupted waits for the end of a turn that another machine has interrupted.
func (m *machine) interrupted(cmd interface{ Wait() error }, out *output, mark string) {
	m.t.Helper()
	_ = cmd.Wait()
	if running(mark) != 0 || !strings.Contains(out.String(), "interrupted after") {
		m.t.Errorf("%d commands run; the machine that ran the turn said %s", running(mark), out)
	}
}

// An approval that a turn on one machine waits for is answered on another, and the command runs on the first.
func TestApproveFromAnotherMachine(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	a.serve("n")
	cmd, out := b.start("exec", "--demo", "--fleet", "--park", "-a", "untrusted", "--node-dir", a.dir, "run: touch asked")
	if code := exitCode(cmd); code != 3 || !strings.Contains(out.String(), "waiting for approval") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	file := filepath.Join(a.dir, "asked")
	if _, err := os.Stat(file); err == nil {
		t.Error("it was run before it was approved")
	}
	ps := b.must("ps")
	if !strings.Contains(ps, "waiting for 1 approval") {
		t.Fatalf("ps: %s", ps)
	}
	b.must("approve", strings.Fields(strings.Split(ps, "\n")[1])[0])
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// Whoever resumes a conversation in which a turn runs on another machine sees that turn, and the message is the next one there.
func TestExecResumeFromAnotherMachine(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	first, said := a.start(append(turn, "--yolo", "run: touch begun; until test -e go; do sleep 0.02; done")...)
	eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(a.dir, "begun"))
		return err == nil
	})
	cmd, out := b.start("exec", "--skip-git-repo-check", "resume", "--demo", b.runningID(), "run: touch joined")
	eventually(t, "the running turn is shown", func() bool { return strings.Contains(out.String(), "$ touch begun") })
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(cmd); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code := exitCode(first); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "joined")); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if report := b.must("fsck"); strings.Count(report, " ok") != 1 {
		t.Errorf("fsck: %s", report)
	}
}

// The terminal UI of one machine shows what another runs, and Esc interrupts it.
func TestAttachFromAnotherMachine(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	owner, said, mark := a.startTurn()
	cmd := b.command("attach", b.runningID())
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); _ = cmd.Wait(); terminal.Close() })
	screen := &output{}
	go func() { // ends with the terminal
		buf := make([]byte, 4096)
		for {
			n, err := terminal.Read(buf)
			_, _ = screen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	eventually(t, "the turn is shown", func() bool { return strings.Contains(screen.String(), mark) })
	if _, err := terminal.Write([]byte("\x1b")); err != nil {
		t.Fatal(err)
	}
	a.interrupted(owner, said, mark)
}

// A client of the app-server of one machine resumes what another runs, and interrupts it.
func TestAppServerOfAnotherMachine(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	owner, said, mark := a.startTurn()
	cmd := b.command("app-server", "--demo")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &output{}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	await := func(what string, is func(m map[string]any) bool) string {
		t.Helper()
		for lines.Scan() {
			var m map[string]any
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%v: %s", err, lines.Text())
			}
			if m["error"] != nil {
				t.Fatalf("%s: %s", what, lines.Text())
			}
			if is(m) {
				return lines.Text()
			}
		}
		t.Fatalf("no %s: %v: %s", what, lines.Err(), errs)
		return ""
	}
	call := func(id int, method, params string) string {
		t.Helper()
		fmt.Fprintf(in, `{"id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		return await(method, func(m map[string]any) bool { return m["id"] == float64(id) })
	}
	call(1, "initialize", `{"clientInfo":{"name":"test","version":"1"}}`)
	fmt.Fprintln(in, `{"method":"initialized"}`)
	id := b.runningID()
	if thread := call(2, "thread/resume", fmt.Sprintf(`{"threadId":%q}`, id)); !strings.Contains(thread, mark) {
		t.Errorf("resumed: %s", thread)
	}
	call(3, "turn/interrupt", fmt.Sprintf(`{"threadId":%q,"turnId":""}`, id))
	a.interrupted(owner, said, mark)
}
