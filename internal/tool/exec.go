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
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// Exec runs command lines. One that has not ended after the time that the call
// gives it goes on as a background command, which WriteStdin reads and types to.
// It runs under the same policy, sandbox and stop as Shell.
type Exec struct {
	Shell *Shell
	Set   []string // what the user sets in the environment counts more than what we do
}

const (
	execYield  = 10 * time.Second // unless the call says otherwise
	stdinYield = 250 * time.Millisecond
	maxYield   = 5 * time.Minute
	maxTokens  = 250_000
)

var execSize = proc.Winsize{Rows: 24, Cols: 80}

// execEnv keeps programs from drawing on a terminal that only a model reads, and
// from waiting in a pager or an editor.
var execEnv = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "LESS=-FRX", "GIT_TERMINAL_PROMPT=0"}

var execSchema = &args.Schema{
	Tool: "exec_command", Bare: "cmd", Rights: askRights, Example: `{"cmd":"npm run dev","yield_time_ms":3000}`,
	Params: append([]args.Param{
		{Name: "cmd", Type: args.Line, Required: true, Description: "The command line, run by a shell.", Aliases: []string{"command", "script", "argv"}},
		{Name: "workdir", Type: args.String, Description: "The directory to run it in. Default: the working directory of the conversation.", Aliases: []string{"cwd", "dir", "directory"}},
		{Name: "yield_time_ms", Type: args.Number, Description: "How long to wait for its end, in milliseconds. After that it continues in the background. Default: 10000."},
		{Name: "tty", Type: args.Boolean, Description: "Run it in a terminal, for programs that need one or that you want to type to. Default: false.", Aliases: []string{"pty"}},
		{Name: "max_output_tokens", Type: args.Number, Description: "The most output to return, in tokens. Default: 10000."},
		{Name: "shell", Type: args.String, Hidden: true},
		{Name: "login", Type: args.Boolean, Hidden: true},
		{Name: "timeout_ms", Type: args.Number, Hidden: true, Aliases: []string{"timeout"}},
	}, escalationParams...),
}

// schema is what the tool takes.
func (e *Exec) schema() *args.Schema {
	if e.Shell.CanAsk {
		return execSchema
	}
	return execUnasked()
}

// Spec describes the tool to the model.
func (e *Exec) Spec() model.ToolSpec {
	schema := e.schema()
	return model.ToolSpec{
		Name: "exec_command", Kind: protocol.CallFunction,
		Description: schema.Describe("Runs a command line in a shell and returns its output (stdout and stderr together) and its exit code. " +
			"A command that has not ended after yield_time_ms continues in the background, and the result has a session id for write_stdin. " +
			"So start servers and watchers in the foreground, without & or nohup: they keep running in later turns, until you or the user end them. " +
			"Processes that a command leaves behind when it ends are ended with it. Without tty it has no input."),
		Parameters: schema.JSON(),
	}
}

// ReadOnly reports that commands run one at a time.
func (e *Exec) ReadOnly() bool { return false }

// yieldTime is how long a call waits.
func yieldTime(v args.Values, otherwise time.Duration) time.Duration {
	if !v.Has("yield_time_ms") {
		return otherwise
	}
	return min(milliseconds(v.Number("yield_time_ms", 0)), maxYield)
}

// maxOutput is how many bytes of output a call wants, at four bytes for a token.
func maxOutput(v args.Values) int {
	if !v.Has("max_output_tokens") {
		return defaultBytes
	}
	return int(min(max(0, v.Number("max_output_tokens", 0)), maxTokens)) * 4
}

// execArgv is what a call wants to run.
func execArgv(v args.Values) []string {
	argv, line := v.Command("cmd")
	if isLine(argv) {
		argv, line = nil, argv[0]
	}
	if len(argv) > 0 {
		return argv
	}
	if strings.TrimSpace(line) == "" {
		return nil
	}
	shell, flag := v.String("shell"), "-c"
	if shell == "" {
		shell = Interpreter()
	}
	if v.Bool("login", false) { // else the environment is ours: a profile may replace PATH
		flag = "-lc"
	}
	return []string{shell, flag, line}
}

// Run runs one command line, if policy lets it, until it ends or its time is over.
func (e *Exec) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(e.schema())
	if wrong != nil {
		return *wrong
	}
	argv := execArgv(v)
	if len(argv) == 0 || argv[0] == "" {
		return failure(e.schema().Error("the command is empty"))
	}
	spec := proc.Spec{
		Argv: argv, Dir: within(call.Settings.Cwd, v.String("workdir")), Timeout: milliseconds(v.Number("timeout_ms", 0)),
		Grace: e.Shell.Grace, Bound: stopBound, Env: slices.Concat(e.Shell.environ(), execEnv, e.Set),
	}
	if v.Bool("tty", false) {
		spec.Pty = &execSize
	}
	wants, wrong := escalated(v, e.schema())
	if wrong != nil {
		return *wrong
	}
	l, instead := e.Shell.clear(ctx, call, spec, wants)
	if instead != nil {
		return *instead
	}
	defer l.desk.close()
	s, process, err := e.start(ctx, call, l.spec)
	if err != nil {
		return notRun(ctx, err)
	}
	s.box, s.command = l.box, argv
	s.await(ctx, yieldTime(v, execYield))
	if ctx.Err() == nil && !s.ended() {
		if res, err := e.background(ctx, call, v, l, s, process); err == nil {
			return res
		} else if ctx.Err() == nil {
			s.Stop(err)
		}
	}
	return e.finish(ctx, call, v, l, s)
}

// start starts the command: its process is recorded before it does anything.
func (e *Exec) start(ctx context.Context, call Call, spec proc.Spec) (*session, json.RawMessage, error) {
	argv := spec.Argv
	s, err := startSession(ctx, e.Shell.Spawner, spec, call.Host.Write)
	if err != nil {
		return nil, nil, err
	}
	process, err := json.Marshal(s.cmd.Identity())
	if err == nil {
		err = call.Host.Record(ctx, &protocol.CommandStarted{Call: call.ID, Command: argv, Cwd: spec.Dir, Process: process})
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
func (e *Exec) background(ctx context.Context, call Call, v args.Values, l launch, s *session, process json.RawMessage) (Result, error) {
	id, write, err := call.Host.Keep(ctx, protocol.BackgroundStarted{
		Command: s.command, Cwd: within(call.Settings.Cwd, v.String("workdir")), Process: process,
	}, s)
	if err != nil {
		return Result{}, err
	}
	l.desk.close()
	c := protocol.CommandResult{Elapsed: time.Since(s.began), Background: id}
	captured(&c, s.read(write))
	return Result{
		Output: protocol.ToolOutput{
			Output: report(s, id, c.Elapsed, show(call, c, maxOutput(v))), Command: &c, Elapsed: c.Elapsed,
		},
		Diff: l.desk.diff(ctx, call, e.Shell.Changes),
	}, nil
}

// finish answers a call whose command has ended, or is to be ended with it.
func (e *Exec) finish(ctx context.Context, call Call, v args.Values, l launch, s *session) Result {
	if ctx.Err() != nil {
		s.Stop(context.Cause(ctx))
	}
	<-s.done
	l.desk.close()
	warnAppeared(ctx, call, l.box)
	warnLeft(ctx, call, s.end)
	c := result(s.end)
	captured(&c, s.read(nil))
	question, hint := l.explainDenial(s.end, c)
	if question != nil {
		return *question
	}
	shown := left(s.end) + show(call, c, maxOutput(v))
	res := protocol.ToolOutput{Command: &c, Elapsed: c.Elapsed, Failed: c.ExitCode != 0}
	switch {
	case s.end.Stopped && ctx.Err() != nil:
		res.Aborted, res.Output = true, shown
	case s.end.Stopped: // it could not be kept
		res.Output = fmt.Sprintf("%v, so the command was ended\n%s", s.end.Cause, report(s, 0, c.Elapsed, shown))
	case s.end.TimedOut:
		res.Output = fmt.Sprintf("the command was stopped because it took longer than %v\n%s", l.spec.Timeout, report(s, 0, c.Elapsed, shown))
	case s.end.Err != nil && c.ExitCode < 0:
		res.Output = strings.TrimSpace(fmt.Sprintf("failed to run the command: %v\n%s", s.end.Err, shown))
	default:
		res.Output = report(s, 0, c.Elapsed, shown)
		if hint != "" {
			res.Output = hint + "\n" + res.Output
			l.noteRefusal(&res, hint)
		}
	}
	return Result{Output: res, Diff: l.desk.diff(ctx, call, e.Shell.Changes)}
}

// report describes a command's end for a model.
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

var stdinSchema = &args.Schema{
	Tool: "write_stdin", Example: `{"session_id":1,"chars":""}`,
	Params: []args.Param{
		{Name: "session_id", Type: args.Number, Required: true, Description: "Which command: the session id that exec_command returned.", Aliases: []string{"id", "session"}},
		{Name: "chars", Type: args.String, Description: "What to type; empty to read only.", Aliases: []string{"input", "text", "data"}},
		{Name: "yield_time_ms", Type: args.Number, Description: "How long to wait for output, in milliseconds. Default: 250."},
		{Name: "max_output_tokens", Type: args.Number, Description: "The most output to return, in tokens. Default: 10000."},
	},
}

// Spec describes the tool to the model.
func (WriteStdin) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "write_stdin", Kind: protocol.CallFunction,
		Description: stdinSchema.Describe("Reads what a background command has printed since the last time. With chars it types them first, which needs a command that was started with tty; " +
			`\u0003 is Ctrl-C, which ends a command without tty as well, and \u0004 is the end of input.`),
		Parameters: stdinSchema.JSON(),
	}
}

// ReadOnly reports that what is typed keeps its order.
func (WriteStdin) ReadOnly() bool { return false }

// Run types and reads.
func (WriteStdin) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(stdinSchema)
	if wrong != nil {
		return *wrong
	}
	id := protocol.BackgroundID(v.Number("session_id", 0))
	s, ok := call.Background[id].(*session)
	if !ok {
		return failure(fmt.Sprintf("there is no background command with session id %d: %s", id, running(call.Background)))
	}
	if chars := v.String("chars"); call.Settings.Plan && chars != "" && chars != ctrlC {
		return failure("nothing was typed: " + planMode) // it may have been started before
	}
	note := typeTo(s, v.String("chars"))
	s.await(ctx, yieldTime(v, stdinYield))
	warnAppeared(ctx, call, s.box)
	var c protocol.CommandResult
	captured(&c, s.read(nil))
	text := report(s, id, time.Since(s.began), protocol.ShortenTo(c.Output, maxOutput(v), c.Omitted))
	return Result{Output: protocol.ToolOutput{Output: note + text, Aborted: ctx.Err() != nil, Failed: note != ""}}
}

// running lists the background commands that run.
func running(all map[protocol.BackgroundID]Background) string {
	var list []string
	for id, b := range all {
		if s, ok := b.(*session); ok && !s.ended() {
			list = append(list, fmt.Sprintf("%d (%s)", id, strings.Join(s.command, " ")))
		}
	}
	if len(list) == 0 {
		return "none is running"
	}
	slices.Sort(list)
	return "running are " + strings.Join(list, ", ")
}

const ctrlC = "\x03"

// typeTo sends input to the command. It returns a note if the input does not
// arrive. Ctrl-C ends a command that has no terminal.
func typeTo(s *session, chars string) string {
	if chars == "" || s.ended() {
		return ""
	}
	if !s.tty {
		if strings.TrimSpace(chars) == ctrlC || chars == ctrlC {
			s.Stop(errors.New("the model ended it"))
			<-s.done
			return ""
		}
		return "the command has no input, since it was started without tty; nothing was typed\n"
	}
	n, err := s.cmd.Write([]byte(chars))
	switch {
	case err == nil || s.ended():
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("the command does not read its input: %d of %d bytes were taken\n", n, len(chars))
	}
	return fmt.Sprintf("typing failed after %d of %d bytes: %v\n", n, len(chars), err)
}
