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
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

func TestExecAnswers(t *testing.T) {
	h, dir := &termHost{}, realDir(t)
	res := terminal(t).Run(t.Context(), on(h, dir, "echo one; test -t 0 -a -t 1 && stty size; pwd; exit 3"))
	out := res.Output
	want := "one\n24 80\n" + dir + "\n"
	if state, text := told(t, out); state != "Process exited with code 3" || text != want {
		t.Errorf("told %q, %q", state, text)
	}
	if !strings.HasPrefix(out.Output, "Wall time: ") || !out.Failed || out.Aborted {
		t.Errorf("output %+v", out)
	}
	if c := out.Command; c.ExitCode != 3 || c.Output != want || c.Background != 0 || c.Elapsed == 0 {
		t.Errorf("command %+v", c)
	}
	if shown, _ := h.said(); shown != want {
		t.Errorf("shown %q", shown)
	}
	if len(h.events) != 1 || len(h.jobs) != 0 {
		t.Fatalf("recorded %v, kept %v", h.events, h.jobs)
	}
	started, ok := h.events[0].(*protocol.CommandStarted)
	if !ok || started.Cwd != dir || len(started.Process) == 0 || strings.Join(started.Command[:2], " ") != "/bin/bash -c" {
		t.Errorf("recorded %+v", started)
	}
}

func TestExecArguments(t *testing.T) {
	dir := realDir(t)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := terminal(t)
	for _, tt := range []struct {
		name, args, want string
		fail             bool
	}{
		{"no login shell, unless said so", `{"cmd":"shopt -q login_shell || echo no"}`, "no\n", false},
		{"login shell, said so", `{"cmd":"shopt -q login_shell && echo yes","login":true}`, "yes\n", false},
		{"no login shell", `{"cmd":"shopt -q login_shell || echo no","login":false}`, "no\n", false},
		{"another shell", `{"cmd":"echo $0","shell":"/bin/sh","login":false}`, "/bin/sh\n", false},
		{"workdir", `{"cmd":"pwd","workdir":"sub","login":false}`, filepath.Join(dir, "sub") + "\n", false},
		{"nothing that draws or waits", `{"cmd":"echo $TERM $NO_COLOR $PAGER $GIT_PAGER","login":false}`, "dumb 1 cat cat\n", false},
		{"signal", `{"cmd":"kill -SEGV $$","login":false}`, "Process was ended by SIGSEGV", true},
		{"not JSON", `{"cmd":`, "failed to parse function arguments:", true},
		{"no command", `{"cmd":" "}`, "failed to parse function arguments: the command is empty", true},
		{"no such shell", `{"cmd":"x","shell":"/no/such"}`, "failed to run the command", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := on(&termHost{}, dir, "")
			c.Arguments = tt.args
			out := e.Run(t.Context(), c).Output
			if !strings.Contains(out.Output, tt.want) || out.Failed != tt.fail || out.Aborted {
				t.Errorf("got %+v, want %q", out, tt.want)
			}
		})
	}
}

func TestYield(t *testing.T) {
	parse := func(format string, a ...any) args.Values {
		v, err := stdinSchema.Parse(fmt.Sprintf(`{"session_id":1`+format+`}`, a...))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if got := yieldTime(parse(""), execYield); got != execYield {
		t.Errorf("nothing gives %v", got)
	}
	for given, want := range map[float64]time.Duration{
		0: 0, -5: 0, 1.5: 1500 * time.Microsecond, 30_000: 30 * time.Second, 300_000: maxYield, 300_001: maxYield, 1e15: maxYield, 1e300: maxYield,
	} {
		if got := yieldTime(parse(`,"yield_time_ms":%v`, given), execYield); got != want {
			t.Errorf("%v gives %v, want %v", given, got, want)
		}
	}
	if got := maxOutput(parse("")); got != 40_000 {
		t.Errorf("nothing gives %d bytes", got)
	}
	for given, want := range map[float64]int{10: 40, 0: 0, -1: 0, 1e300: 1_000_000} {
		if got := maxOutput(parse(`,"max_output_tokens":%v`, given)); got != want {
			t.Errorf("%v tokens give %d bytes, want %d", given, got, want)
		}
	}
}

// A command that is not over when its time is goes on, is read and typed to,
// and nothing that it prints is lost or told twice.
func TestExecInTheBackground(t *testing.T) {
	h := &termHost{}
	res := background(t, h, "echo first; read x; echo got $x; exit 5")
	out := res.Output
	state, all := told(t, out)
	if state != "Process running with session ID 1" || out.Failed || out.Aborted || out.Command.Background != 1 || out.Command.Output != all {
		t.Errorf("output %+v, command %+v", out, out.Command)
	}
	started, kept := h.events[0].(*protocol.CommandStarted), h.events[1].(*protocol.BackgroundStarted)
	if string(kept.Process) != string(started.Process) || strings.Join(kept.Command, " ") != strings.Join(started.Command, " ") || kept.Cwd != started.Cwd {
		t.Errorf("started %+v, kept %+v", started, kept)
	}
	if !strings.Contains(all, "first") {
		more, _ := readUntil(t, h, "first\n")
		all += more
	}
	in := WriteStdin{}.Run(t.Context(), typing(h, "hello\n", 0)).Output
	_, text := told(t, in)
	all += text
	if !strings.Contains(all, "got hello\n") {
		more, _ := readUntil(t, h, "got hello\n")
		all += more
	}
	result, stopped := h.jobs[0].Wait()
	end := WriteStdin{}.Run(t.Context(), typing(h, "", 0)).Output
	state, text = told(t, end)
	all += text
	if state != "Process exited with code 5" || end.Failed {
		t.Errorf("the end is told as %+v", end)
	}
	if want := "first\nhello\ngot hello\n"; all != want {
		t.Errorf("read %q, want %q", all, want)
	}
	shown, later := h.said()
	if shown+later != all || shown != out.Command.Output {
		t.Errorf("shown %q and later %q", shown, later)
	}
	if result.Output != later || result.ExitCode != 5 || stopped {
		t.Errorf("result %+v, stopped %t; shown later %q", result, stopped, later)
	}
	// After the end there is nothing more to read or to type.
	state, text = told(t, WriteStdin{}.Run(t.Context(), typing(h, "more\n", 0)).Output)
	if state != "Process exited with code 5" || text != "" {
		t.Errorf("after the end: %q, %q", state, text)
	}
}

func TestExecKeys(t *testing.T) {
	for _, tt := range []struct{ name, cmd, keys, want, state string }{
		{"Ctrl-C", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done", "\u0003", "caught\n", "Process exited with code 9"},
		{"end of input", "echo ready; cat; echo over", "\u0004", "over\n", "Process exited with code 0"},
		{"end of input after a line", "echo ready; cat; echo over", "a line\n\u0004", "over\n", "Process exited with code 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &termHost{}
			background(t, h, tt.cmd)
			eventually(t, "it is ready", func() bool { s, l := h.said(); return strings.Contains(s+l, "ready") })
			WriteStdin{}.Run(t.Context(), typing(h, tt.keys, 0))
			if _, stopped := h.jobs[0].Wait(); stopped {
				t.Error("it did not end by itself")
			}
			state, _ := told(t, WriteStdin{}.Run(t.Context(), typing(h, "", 0)).Output)
			if _, later := h.said(); !strings.Contains(later, tt.want) || state != tt.state {
				t.Errorf("%q, state %q", later, state)
			}
		})
	}
}

// Typing to a command that does not read comes to an end, and says so.
func TestExecThatDoesNotRead(t *testing.T) {
	h := &termHost{}
	background(t, h, "stty raw -echo; echo ready; exec sleep 600")
	eventually(t, "it is ready", func() bool { s, l := h.said(); return strings.Contains(s+l, "ready") })
	out := WriteStdin{}.Run(t.Context(), typing(h, strings.Repeat("x", 1<<20), 0)).Output
	if !strings.HasPrefix(out.Output, "the command does not read its input: ") || !strings.Contains(out.Output, " of 1048576 bytes were taken\n") || !out.Failed {
		t.Errorf("output %.200q", out.Output)
	}
	if state, _ := told(t, out); state != "Process running with session ID 1" {
		t.Errorf("state %q", state)
	}
}

func TestWriteStdinToNobody(t *testing.T) {
	h := &termHost{}
	for name, a := range map[string]string{
		"unknown": `{"session_id":7,"chars":""}`, "negative": `{"session_id":-1,"chars":""}`, "huge": `{"session_id":1e300,"chars":""}`,
	} {
		c := typing(h, "", 0)
		c.Arguments = a
		if out := (WriteStdin{}).Run(t.Context(), c).Output; !out.Failed || !strings.HasPrefix(out.Output, "there is no background command with session id ") {
			t.Errorf("%s: %+v", name, out)
		}
	}
	c := typing(h, "", 0)
	c.Arguments = `{"session_id":"one"}`
	if out := (WriteStdin{}).Run(t.Context(), c).Output; !out.Failed || !strings.HasPrefix(out.Output, "failed to parse function arguments:") {
		t.Errorf("nonsense: %+v", out)
	}
}

func TestWriteStdinIsStopped(t *testing.T) {
	h := &termHost{}
	background(t, h, "echo ready; exec sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := WriteStdin{}.Run(ctx, typing(h, "", 30_000)).Output
	if !out.Aborted {
		t.Errorf("output %+v", out)
	}
	if job := h.jobs[0].(*session); job.ended() {
		t.Error("the command ended with the call that only looked at it")
	}
}

// It has to hold for every way in which a terminal's output can be cut.
func TestSessionPutsLineEndsAndCharactersTogether(t *testing.T) {
	whole := "a\r\nb\r\r\nc €\r\n\r𝄐\r"
	want := strings.ReplaceAll(whole, "\r\n", "\n")
	for i := range len(whole) + 1 {
		for j := i; j <= len(whole); j++ {
			var shown string
			s := &session{tty: true, since: newCapture(sessionBytes), unread: &capture.Capture{}, kept: true, write: func(_ protocol.DeltaKind, text string) { shown += text }}
			for _, piece := range []string{whole[:i], whole[i:j], whole[j:]} {
				s.put(proc.Stdout, s.text[0].decode([]byte(piece)), false)
			}
			if before := shown; strings.HasSuffix(before, "\r") {
				t.Fatalf("cut at %d and %d: half a line end is shown: %q", i, j, before)
			}
			s.put(proc.Stdout, s.text[0].rest(), true)
			if got := s.take().Text(); got != want || shown != want || s.since.Text() != want {
				t.Fatalf("cut at %d and %d: read %q, shown %q, kept %q, want %q", i, j, got, shown, s.since.Text(), want)
			}
		}
	}
}

func TestExecMuchOutput(t *testing.T) {
	for name, tty := range map[string]bool{"terminal": true, "pipes": false} {
		t.Run(name, func(t *testing.T) {
			out := terminal(t).Run(t.Context(), on(&termHost{}, t.TempDir(), "head -c 17000000 /dev/zero | tr '\\0' x; echo; echo last", params{"yield_time_ms": 300_000, "tty": tty})).Output
			c := out.Command
			if c == nil || c.Background != 0 {
				t.Fatalf("output %.200q", out.Output)
			}
			if n := len(c.Output); n > 16<<20+100 || n < 16<<20 || c.Omitted != 17_000_006-16<<20 || !strings.HasSuffix(c.Output, "last\n") {
				t.Errorf("kept %d bytes, omitted %d", n, c.Omitted)
			}
			_, text := told(t, out)
			if !strings.Contains(text, "of 17000") || !strings.Contains(text, "last\n[To read the omitted part, call read_file with path \"output:1.1.0\"") || len(text) > 40_300 {
				t.Errorf("told %d bytes, ends %q", len(text), text[max(0, len(text)-200):])
			}
		})
	}
	res := terminal(t).Run(t.Context(), on(&termHost{}, t.TempDir(), "seq 1 3000", params{"max_output_tokens": 10, "yield_time_ms": 30000})).Output
	if _, text := told(t, res); len(text) > 240 || !strings.HasPrefix(text, "1\n2\n") || !strings.Contains(text, "3000\n") {
		t.Errorf("told %q", text)
	}
}

// treeOf is a command with all that is hard to end: a daemon in a session of its
// own and a child that is deaf to polite signals.
func treeOf(mark string) string {
	return "setsid bash -c 'trap \"\" TERM HUP; for i in 1 2 3; do sleep 600." + mark + "; done' & " +
		"(trap '' TERM HUP; sleep 600." + mark + ") & echo ready; sleep 600." + mark
}

func TestExecIsStoppedInItsYield(t *testing.T) {
	mark := newMark()
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &termHost{onShow: func(all string) {
		if strings.HasSuffix(all, "ready\n") {
			cancel(errors.New("stop"))
		}
	}}
	out := terminal(t).Run(ctx, on(h, t.TempDir(), treeOf(mark), params{"yield_time_ms": 30000})).Output
	noneMarked(t, mark)
	if !out.Aborted || !strings.HasSuffix(out.Output, "ready\n") || out.Command.Killed < 3 || len(h.jobs) > 0 {
		t.Errorf("output %+v, command %+v, kept %d", out, out.Command, len(h.jobs))
	}
}

func TestBackgroundCommandIsStopped(t *testing.T) {
	mark := newMark()
	h := &termHost{}
	background(t, h, treeOf(mark))
	eventually(t, "it is ready", func() bool { s, l := h.said(); return strings.Contains(s+l, "ready") })
	h.jobs[0].Stop(errors.New("stop"))
	result, stopped := h.jobs[0].Wait()
	noneMarked(t, mark)
	if !stopped || result.Killed < 3 {
		t.Errorf("result %+v, stopped %t", result, stopped)
	}
	if state, _ := told(t, WriteStdin{}.Run(t.Context(), typing(h, "x", 0)).Output); strings.Contains(state, "running") {
		t.Errorf("state %q", state)
	}
}

// A command that cannot be kept is ended, and the model is told why.
func TestExecThatCannotBeKept(t *testing.T) {
	mark := newMark()
	h := &termHost{noKeep: errors.New("there are 64 background commands already")}
	out := terminal(t).Run(t.Context(), on(h, t.TempDir(), "echo up; sleep 600."+mark, params{"yield_time_ms": 0})).Output
	noneMarked(t, mark)
	if !strings.HasPrefix(out.Output, "there are 64 background commands already, so the command was ended\n") || out.Aborted || !out.Failed {
		t.Errorf("output %+v", out)
	}
}

// A stop that comes while it is being kept is a stop.
func TestExecStoppedWhileItIsKept(t *testing.T) {
	mark := newMark()
	ctx, cancel := context.WithCancel(t.Context())
	h := &stoppingHost{cancel: cancel}
	c := on(&h.termHost, t.TempDir(), "sleep 600."+mark, params{"yield_time_ms": 0})
	c.Host = h
	out := terminal(t).Run(ctx, c).Output
	noneMarked(t, mark)
	if !out.Aborted {
		t.Errorf("output %+v", out)
	}
}

type stoppingHost struct {
	termHost
	cancel func()
}

func (h *stoppingHost) Keep(context.Context, protocol.BackgroundStarted, Background) (protocol.BackgroundID, func(protocol.DeltaKind, string), error) {
	h.cancel()
	return 0, nil, errors.New("already stopping")
}

func TestExecDoesNotRunWhatIsNotRecorded(t *testing.T) {
	dir := t.TempDir()
	h := &patientHost{termHost: termHost{noEvent: errors.New("disk full")}, ran: filepath.Join(dir, "ran")}
	c := on(&h.termHost, dir, "touch ran")
	c.Host = h
	out := terminal(t).Run(t.Context(), c).Output
	if !out.Failed || !strings.Contains(out.Output, "disk full") {
		t.Errorf("output %+v", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// A patientHost takes its time to record, in which a command could run.
type patientHost struct {
	termHost
	ran string
}

func (h *patientHost) Record(ctx context.Context, b protocol.Body) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 20 {
		if _, err := os.Stat(h.ran); err == nil {
			break
		}
		<-tick.C
	}
	return h.termHost.Record(ctx, b)
}

// What was printed before it was kept is the call's, what comes then its own.
func TestOutputBeforeAndAfterTheKeep(t *testing.T) {
	e, h := terminal(t), &termHost{}
	c := on(h, t.TempDir(), "stty -echo; echo before; read x; printf 'after\\r'")
	a, err := execSchema.Parse(c.Arguments)
	if err != nil {
		t.Fatal(err)
	}
	s, process, err := e.start(t.Context(), c, proc.Spec{Argv: execArgv(a), Dir: "/", Pty: &execSize})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has printed", func() bool { shown, _ := h.said(); return shown == "before\n" })
	res, err := e.background(t.Context(), c, a, launch{}, s, process)
	if err != nil || res.Output.Command.Output != "before\n" {
		t.Fatalf("result %+v, %v", res, err)
	}
	WriteStdin{}.Run(t.Context(), typing(h, "\n", 0))
	r, _ := h.jobs[0].Wait()
	if shown, later := h.said(); r.Output != "after\r" || later != r.Output || shown != "before\n" {
		t.Errorf("result %q, shown %q, then %q", r.Output, shown, later)
	}
}

func TestExecThatEndsInTheMiddle(t *testing.T) {
	for script, want := range map[string]string{`printf 'x\r'`: "x\r", `printf 'caf\303'`: "caf\xc3", `printf 'x\r\303'`: "x\r\xc3"} {
		h := &termHost{}
		out := terminal(t).Run(t.Context(), on(h, t.TempDir(), script)).Output
		if shown, _ := h.said(); out.Command.Output != want || shown != want || !utf8.ValidString(out.Output) {
			t.Errorf("%s: kept %q, shown %q, want %q; the model is told %q", script, out.Command.Output, shown, want, out.Output)
		}
	}
}

func TestExecSpecs(t *testing.T) {
	for _, tool := range []Tool{terminal(t), WriteStdin{}} {
		spec := tool.Spec()
		if !json.Valid(spec.Parameters) || spec.Description == "" || tool.ReadOnly() {
			t.Errorf("%s: %+v", spec.Name, spec)
		}
	}
}

// A model is offered to ask for more where a client can be asked, and only there.
func TestEscalationIsOfferedWhereSomebodyCanBeAsked(t *testing.T) {
	for _, can := range []bool{false, true} {
		sh := shell(t)
		sh.CanAsk = can
		for _, tool := range []Tool{&Exec{Shell: sh}, sh} {
			if spec := tool.Spec(); strings.Contains(string(spec.Parameters), "with_escalated_permissions") != can || !json.Valid(spec.Parameters) {
				t.Errorf("a client can be asked: %t; %s is offered as %s", can, spec.Name, spec.Parameters)
			}
		}
	}
}

// Without a terminal both streams are told apart, there is no input, and Ctrl-C
// ends the command.
func TestExecWithoutTerminal(t *testing.T) {
	h := &termHost{}
	out := terminal(t).Run(t.Context(), on(h, t.TempDir(), "test -t 1 && echo tty; echo out; echo err >&2; cat", params{"tty": false})).Output
	if state, text := told(t, out); state != "Process exited with code 0" || text != "out\nerr\n" || len(out.Command.Stderr) != 1 {
		t.Errorf("state %q, text %q, stderr %v", state, text, out.Command.Stderr)
	}

	terminal(t).Run(t.Context(), on(h, t.TempDir(), "echo up; sleep 600", params{"tty": false, "yield_time_ms": 0}))
	if out := (WriteStdin{}).Run(t.Context(), typing(h, "x", 0)).Output; !out.Failed || !strings.Contains(out.Output, "without tty") {
		t.Errorf("typing: %+v", out)
	}
	eventually(t, "it runs", func() bool { shown, later := h.said(); return strings.Contains(shown+later, "up") })
	out = WriteStdin{}.Run(t.Context(), typing(h, "\x03", 0)).Output
	if state, _ := told(t, out); !strings.HasPrefix(state, "Process was ended by ") || out.Failed {
		t.Errorf("Ctrl-C: %+v", out)
	}
	if _, stopped := h.jobs[0].Wait(); !stopped {
		t.Error("it does not count as stopped")
	}
}

// The end of its call, and of the turn's context, does not end it.
func TestBackgroundCommandOutlivesItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &termHost{}
	terminal(t).Run(ctx, on(h, t.TempDir(), "read x; echo still here; exit 6", params{"yield_time_ms": 0}))
	cancel()
	WriteStdin{}.Run(t.Context(), typing(h, "\n", 0))
	if r, stopped := h.jobs[0].Wait(); stopped || r.ExitCode != 6 || !strings.HasSuffix(r.Output, "still here\n") {
		t.Errorf("result %+v, stopped %t", r, stopped)
	}
}
