package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// onBoth plays a scenario over pipes and over a socket.
func onBoth(t *testing.T, args []string, play func(t *testing.T, pl *place, c *appClient)) {
	t.Helper()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		pl := newPlace(t)
		c := pl.appOnStdio(args...)
		play(t, pl, c)
		checkLog(t, c.log)
		c.close()
		<-c.server.done
		if code := c.server.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d\n%s", code, c.server.err.String())
		}
		eventually(t, "nothing runs any more", func() bool { return len(traces(pl.dir)) == 0 })
		pl.fsck()
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		s := newAppSite(t, args...)
		c := s.connect()
		play(t, s.place, c)
		checkLog(t, c.log)
		if err := s.server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-s.server.done
		if code := s.server.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d\n%s", code, s.server.err.String())
		}
		if _, err := os.Lstat(s.socket); !os.IsNotExist(err) {
			t.Errorf("the socket is left behind: %v", err)
		}
		eventually(t, "nothing runs any more", func() bool { return len(traces(s.dir)) == 0 })
		s.fsck()
	})
}

func TestAppServerTurn(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, _ *place, c *appClient) {
		c.start()
		c.say("run: echo one; echo two")
		done := c.await("turn/completed")
		if got := within(done, "params", "turn", "status"); got != "completed" {
			t.Errorf("the turn is %v", got)
		}
		all := strings.Join(c.log, "")
		contains(t, "the messages", all, `"type":"userMessage"`, `"delta":"one\n`, `"aggregatedOutput":"one\ntwo\n"`, `"exitCode":0`, `"status":{"type":"idle"}`)
		if strings.Contains(all, "jsonrpc") {
			t.Error("messages carry jsonrpc")
		}
	})
}

// An interrupt ends everything that runs, and is answered when it has; the output so far is kept.
func TestAppServerInterrupt(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, pl *place, c *appClient) {
		c.start()
		turn := c.say("run: echo begun; sleep 632")
		c.await("item/commandExecution/outputDelta")
		id := c.ask("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, turn))
		done := c.await("turn/completed")
		if got := within(done, "params", "turn", "status"); got != "interrupted" {
			t.Errorf("the turn is %v", got)
		}
		c.answer(id)
		for _, r := range processes() {
			if r.name == "sleep" && touches(r.pid, pl.work) {
				t.Errorf("%v still runs", r)
			}
		}
		if got := c.refused("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, turn)); got != "-32600 no active turn to interrupt" {
			t.Error(got)
		}
		status, texts := itemTexts(c.result("thread/read", `{"threadId":"T","includeTurns":true}`)["thread"])
		if status != "interrupted interrupted" || !strings.Contains(texts, "begun") {
			t.Errorf("%s\n%s", status, texts)
		}
		c.say("talk 500")
		c.await("item/agentMessage/delta")
		id = c.ask("turn/interrupt", `{"threadId":"T","turnId":""}`)
		c.await("turn/completed")
		c.answer(id)
		c.say("run: echo works")
		if done := c.await("turn/completed"); within(done, "params", "turn", "status") != "completed" {
			t.Errorf("the next turn: %v", done)
		}
	})
}

func TestAppServerApproval(t *testing.T) {
	t.Parallel()
	onBoth(t, []string{"-c", `approval_policy="untrusted"`}, func(t *testing.T, pl *place, c *appClient) {
		c.start()
		c.say("run: touch approved")
		q := c.await("item/commandExecution/requestApproval")
		contains(t, "the command", fmt.Sprint(within(q, "params", "command")), "touch approved")
		c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"accept"}}`, q["id"]))
		c.await("serverRequest/resolved")
		c.await("turn/completed")
		if _, err := os.Stat(filepath.Join(pl.work, "approved")); err != nil {
			t.Error(err)
		}
		c.say("write new.txt: hello")
		q = c.await("item/fileChange/requestApproval")
		c.send(fmt.Sprintf(`{"id":%q,"result":{"decision":"decline"}}`, q["id"]))
		c.await("turn/completed")
		if _, err := os.Stat(filepath.Join(pl.work, "new.txt")); err == nil {
			t.Error("what was declined was written")
		}
		contains(t, "the messages", strings.Join(c.log, ""), `"status":"declined"`, `"diff":"hello\n"`)
	})
}

// A server that is killed in the middle of a turn leaves everything to the next one, at the same address.
func TestAppServerKilled(t *testing.T) {
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		pl := newPlace(t)
		c := pl.appOnStdio()
		playKilled(t, pl, c, c.server, func() *appClient { return pl.appOnStdio() })
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		s := newAppSite(t)
		playKilled(t, s.place, s.connect(), s.server, func() *appClient {
			s.serve()
			return s.connect()
		})
	})
}

func playKilled(t *testing.T, pl *place, c *appClient, server *process, again func() *appClient) {
	c.start()
	turn := c.say("run: for i in 1 2 3; do echo line $i; done; sleep 633")
	c.await("item/commandExecution/outputDelta")
	eventually(t, "what was seen is in the file", func() bool {
		out, _, _ := pl.run("show", c.thread)
		return strings.Contains(out, "line 3")
	})
	_ = server.cmd.Process.Kill()
	<-server.done
	eventually(t, "nothing runs any more", func() bool { return len(traces(pl.work)) == 0 })
	d := again()
	d.thread = c.thread
	thread := d.result("thread/resume", `{"threadId":"T","excludeTurns":true}`)["thread"]
	status, texts := itemTexts(thread)
	if status != "interrupted crashed" {
		t.Errorf("the turn is %s", status)
	}
	contains(t, "the items", texts, "line 3")
	contains(t, "the turn's id", fmt.Sprint(thread), "id:"+turn)
	d.say("run: echo again")
	if done := d.await("turn/completed"); within(done, "params", "turn", "status") != "completed" {
		t.Errorf("the next turn: %v", done)
	}
}

// Two clients of one thread see the same, whoever acts.
func TestAppServerTwoClients(t *testing.T) {
	t.Parallel()
	s := newAppSite(t)
	a := s.connect()
	a.start()
	a.say("talk 400")
	a.await("item/agentMessage/delta")
	b := s.connect()
	b.thread = a.thread
	r := b.result("thread/resume", `{"threadId":"T"}`)
	turns, _ := within(r, "thread", "turns").([]any)
	turn := fmt.Sprint(within(turns[0], "id"))
	b.await("item/agentMessage/delta")
	b.result("turn/interrupt", fmt.Sprintf(`{"threadId":"T","turnId":%q}`, turn))
	a.await("turn/completed")
	for name, c := range map[string]*appClient{"a": a, "b": b} {
		checkLog(t, c.log)
		text, full := streamed(c.log)
		if text == "" || text != full {
			t.Errorf("%s was sent %q piece by piece, and %q", name, text, full)
		}
	}
}

// streamed is the text of the pieces of a message, and that of the finished one.
func streamed(log []string) (pieces, whole string) {
	for _, line := range log {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		switch m["method"] {
		case "item/agentMessage/delta":
			pieces += fmt.Sprint(within(m, "params", "delta"))
		case "item/completed":
			if within(m, "params", "item", "type") == "agentMessage" {
				whole = fmt.Sprint(within(m, "params", "item", "text"))
			}
		}
	}
	return pieces, whole
}

func TestAppServerAddresses(t *testing.T) {
	t.Parallel()
	s := newAppSite(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"in use":        {[]string{"--listen", "unix://" + s.socket}, "already in use"},
		"no token":      {[]string{"--listen", "ws://127.0.0.1:0"}, "needs a token"},
		"other token":   {[]string{"--listen", "ws://127.0.0.1:0", "--ws-auth", "signed-bearer-token"}, "not supported"},
		"useless token": {[]string{"--ws-auth", "capability-token"}, "for --listen ws:// only"},
		"nonsense":      {[]string{"--listen", "tcp://x"}, "want stdio://"},
		"Codex's":       {[]string{"--listen", "unix://" + filepath.Join(s.dir, "home", ".codex", "app-server-control", "app-server-control.sock")}, "Codex's own socket"},
	} {
		_, errs, code := s.run(append([]string{"app-server", "--demo"}, tt.args...)...)
		if code == 0 || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit code %d\n%s", name, code, errs)
		}
	}
}
