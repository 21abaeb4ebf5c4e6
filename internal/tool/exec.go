package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/protocol"
)

// Exec runs command lines on a terminal. One that has not ended after the time
// that the call gives it goes on as a background command, which WriteStdin reads
// and types to. It runs under the same policy, sandbox and stop as Shell.
type Exec struct {
	Shell *Shell
	Set   []string // what the user sets in the environment counts more than what we do
}

const (
	execYield  = 10 * time.Second // unless the call says otherwise
	stdinYield = 250 * time.Millisecond
	mostYield  = 30 * time.Second
	execTokens = 10_000 // of output, unless the call says otherwise
)

var execSize = proc.Winsize{Rows: 24, Cols: 80}

// execEnv keeps programs from drawing on a terminal that only a model reads, and
// from waiting in a pager.
var execEnv = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "LESS=-FRX"}

// Spec describes the tool to the model.
func (e *Exec) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "exec_command", Kind: protocol.CallFunction,
		Description: "Runs a command line in a shell on a terminal and returns what it printed. If it has not ended after yield_time_ms it goes on in the " +
			"background, and the answer names a session id for write_stdin. Background commands are ended when the user stops the turn that started them.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"cmd":{"type":"string","description":"the command line"},` +
			`"yield_time_ms":{"type":"number","description":"how long to wait for its end, in milliseconds"},` +
			`"max_output_tokens":{"type":"number","description":"the most output to return"},` +
			`"shell":{"type":"string","description":"the shell; /bin/bash if not given"},` +
			`"login":{"type":"boolean","description":"whether it is a login shell; it is if not given"},` +
			`"workdir":{"type":"string","description":"where to run it; the working directory of the conversation if not given"},` +
			escalationSchema + `},` +
			`"required":["cmd"],"additionalProperties":false}`),
	}
}

// ReadOnly reports that commands run one at a time.
func (e *Exec) ReadOnly() bool { return false }

type execArgs struct {
	Cmd     string `json:"cmd"`
	Shell   string `json:"shell"`
	Login   *bool  `json:"login"`
	Workdir string `json:"workdir"`
	yield
	escalation
}

// A yield is how long a call waits, and how much it wants to read.
type yield struct {
	Time   *float64 `json:"yield_time_ms"`
	Tokens *float64 `json:"max_output_tokens"`
}

func (y yield) wait(def time.Duration) time.Duration {
	if y.Time == nil {
		return def
	}
	most := float64(mostYield / time.Millisecond) // more may not be a Duration
	return time.Duration(min(max(0, *y.Time), most) * float64(time.Millisecond))
}

// shorten cuts the middle out of what is more than the call wants.
func (y yield) shorten(text string) string {
	tokens := float64(execTokens)
	if y.Tokens != nil {
		tokens = max(0, *y.Tokens)
	}
	return protocol.CutMiddle(text, int(min(tokens, 250_000)*4))
}

func (a execArgs) argv() []string {
	shell, flag := a.Shell, "-lc"
	if shell == "" {
		shell = "/bin/bash"
	}
	if a.Login != nil && !*a.Login {
		flag = "-c"
	}
	return []string{shell, flag, a.Cmd}
}

// Run runs one command line, if policy lets it, until it ends or its time is over.
func (e *Exec) Run(ctx context.Context, call Call) Result {
	var a execArgs
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil {
		return failed("failed to parse function arguments: " + err.Error())
	}
	if strings.TrimSpace(a.Cmd) == "" {
		return failed("failed to parse function arguments: cmd is empty")
	}
	spec := proc.Spec{
		Argv: a.argv(), Dir: within(call.Settings.Cwd, a.Workdir), Pty: &execSize,
		Grace: e.Shell.Grace, Bound: stopBound, Env: slices.Concat(e.Shell.environ(), execEnv, e.Set),
	}
	l, instead := e.Shell.clear(ctx, call, spec, a.escalation)
	if instead != nil {
		return *instead
	}
	s, process, err := e.start(ctx, call, l.spec)
	if err != nil {
		return notRun(ctx, err)
	}
	s.box = l.box
	s.await(ctx, a.wait(execYield))
	if ctx.Err() == nil && !s.ended() {
		if res, err := e.background(ctx, call, a, s, process); err == nil {
			return res
		} else if ctx.Err() == nil {
			s.Stop(err)
		}
	}
	return e.finish(ctx, call, a, l, s)
}

// start starts the command: its process is recorded before it does anything.
func (e *Exec) start(ctx context.Context, call Call, spec proc.Spec) (*session, json.RawMessage, error) {
	s, err := startSession(ctx, e.Shell.Spawner, spec, call.Host.Write)
	if err != nil {
		return nil, nil, err
	}
	process, err := json.Marshal(s.cmd.Identity())
	if err == nil {
		err = call.Host.Record(ctx, &protocol.CommandStarted{Call: call.ID, Command: spec.Argv, Cwd: spec.Dir, Process: process})
	}
	if err != nil { // nothing ran: the command was not released
		s.Stop(err)
		<-s.done
		return nil, nil, err
	}
	s.cmd.Release()
	return s, process, nil
}

// background hands the command over to the conversation and answers the call
// with what it has printed so far.
func (e *Exec) background(ctx context.Context, call Call, a execArgs, s *session, process json.RawMessage) (Result, error) {
	id, write, err := call.Host.Keep(ctx, protocol.BackgroundStarted{
		Command: a.argv(), Cwd: within(call.Settings.Cwd, a.Workdir), Process: process,
	}, s)
	if err != nil {
		return Result{}, err
	}
	out := s.read(write)
	elapsed := time.Since(s.began)
	return Result{
		Output: protocol.ToolOutput{
			Output:  report(s, id, elapsed, a.shorten(out.text)),
			Command: &protocol.CommandResult{Output: out.text, Omitted: out.omitted, Elapsed: elapsed, Background: id},
			Elapsed: elapsed,
		},
		Diff: e.Shell.Changes.ran(ctx, call),
	}, nil
}

// finish answers a call whose command has ended, or is to be ended with it.
func (e *Exec) finish(ctx context.Context, call Call, a execArgs, l launch, s *session) Result {
	if ctx.Err() != nil {
		s.Stop(context.Cause(ctx))
	}
	<-s.done
	out := s.read(nil)
	tellAppeared(ctx, call, l.box)
	tellLeft(ctx, call, s.end)
	c := result(s.end)
	c.Output, c.Omitted = out.text, out.omitted
	question, hint := l.denied(s.end, c)
	if question != nil {
		return *question
	}
	shown := left(s.end) + a.shorten(out.text)
	res := protocol.ToolOutput{Command: &c, Elapsed: c.Elapsed, Failed: c.ExitCode != 0}
	switch {
	case s.end.Stopped && ctx.Err() != nil:
		res.Aborted, res.Output = true, shown
	case s.end.Stopped: // it could not be kept
		res.Output = fmt.Sprintf("%v, so the command was ended\n%s", s.end.Cause, report(s, 0, c.Elapsed, shown))
	case s.end.Err != nil && c.ExitCode < 0:
		res.Output = strings.TrimSpace(fmt.Sprintf("failed to run the command: %v\n%s", s.end.Err, shown))
	default:
		res.Output = report(s, 0, c.Elapsed, shown)
		if hint != "" {
			res.Output = hint + "\n" + res.Output
		}
	}
	return Result{Output: res, Diff: e.Shell.Changes.ran(ctx, call)}
}

// report is what a model is told of a command on a terminal.
func report(s *session, id protocol.BackgroundID, elapsed time.Duration, output string) string {
	state := fmt.Sprintf("Process running with session ID %d", id)
	if s.ended() {
		state = fmt.Sprintf("Process exited with code %d", s.end.ExitCode)
		if s.end.Signal != "" {
			state = "Process was ended by " + s.end.Signal
		}
	}
	return fmt.Sprintf("Wall time: %.1f seconds\n%s\nOutput:\n%s", elapsed.Seconds(), state, output)
}

// WriteStdin types to a background command, and reads what it printed since.
type WriteStdin struct{}

// Spec describes the tool to the model.
func (WriteStdin) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "write_stdin", Kind: protocol.CallFunction,
		Description: "Types characters to a command that runs in the background (\\u0003 is Ctrl-C, \\u0004 the end of input), waits, and returns what it printed since the last time. " +
			"With empty chars it only reads.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"session_id":{"type":"number","description":"which command: the id that exec_command returned"},` +
			`"chars":{"type":"string","description":"what to type"},` +
			`"yield_time_ms":{"type":"number","description":"how long to wait for output, in milliseconds"},` +
			`"max_output_tokens":{"type":"number","description":"the most output to return"}},` +
			`"required":["session_id","chars"],"additionalProperties":false}`),
	}
}

// ReadOnly reports that what is typed keeps its order.
func (WriteStdin) ReadOnly() bool { return false }

// Run types and reads.
func (WriteStdin) Run(ctx context.Context, call Call) Result {
	var a struct {
		ID    float64 `json:"session_id"`
		Chars string  `json:"chars"`
		yield
	}
	if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil {
		return failed("failed to parse function arguments: " + err.Error())
	}
	id := protocol.BackgroundID(a.ID)
	s, ok := call.Background[id].(*session)
	if !ok {
		return failed(fmt.Sprintf("no command with session id %v is running: it was never started, or it was ended when fermata was stopped", a.ID))
	}
	note := typeTo(s, a.Chars)
	s.await(ctx, a.wait(stdinYield))
	tellAppeared(ctx, call, s.box)
	text := report(s, id, time.Since(s.began), a.shorten(s.read(nil).text))
	return Result{Output: protocol.ToolOutput{Output: note + text, Aborted: ctx.Err() != nil, Failed: note != ""}}
}

// typeTo sends input to the command, and says so if it does not arrive.
func typeTo(s *session, chars string) string {
	if chars == "" || s.ended() {
		return ""
	}
	n, err := s.cmd.Write([]byte(chars))
	switch {
	case err == nil || s.ended():
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("the command does not read: %d of %d bytes were taken\n", n, len(chars))
	}
	return fmt.Sprintf("typing failed after %d of %d bytes: %v\n", n, len(chars), err)
}
