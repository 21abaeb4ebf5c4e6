package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/patch"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/fermata-agent/fermata/internal/sandbox"
	"github.com/fermata-agent/fermata/protocol"
)

// A Shell runs commands.
type Shell struct {
	Spawner *proc.Spawner
	Timeout time.Duration   // for calls that name none; 0 is two minutes
	Grace   time.Duration   // between TERM and KILL; 0 is that of package proc
	Home    string          // fermata's own directory, which commands must not touch
	Environ func() []string // what commands get; nil is everything
	Changes *Changes        // what this turn changed; may be nil
	Patch   *Patch          // carries out calls of apply_patch; nil runs them like any command

	PIDNamespace bool // hide other processes from confined commands
}

const defaultTimeout = 2 * time.Minute

// stopBound is the longest that stopping a command may take. It is shorter than
// what a turn waits for its workers, so that the turn hears how it went.
const stopBound = time.Second

// Spec describes the tool to the model.
func (s *Shell) Spec() model.ToolSpec {
	return model.ToolSpec{
		Name: "shell", Kind: protocol.CallFunction,
		Description: "Runs a command and returns what it printed, stdout and stderr together, and its exit code. " +
			`The command is an argument list, run without a shell: use ["bash","-lc","…"] for shell syntax. ` +
			"It has no terminal and no input. Processes that it leaves behind are ended with it.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"array","items":{"type":"string"},"description":"the command and its arguments"},` +
			`"workdir":{"type":"string","description":"where to run it; the working directory of the conversation if not given"},` +
			`"timeout_ms":{"type":"number","description":"after how many milliseconds it is stopped"},` +
			escalationSchema + `},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

// ReadOnly reports that commands run one at a time.
func (s *Shell) ReadOnly() bool { return false }

type shellArgs struct {
	Command command `json:"command"`
	Workdir string  `json:"workdir"`
	Timeout float64 `json:"timeout_ms"`
	Alias   float64 `json:"timeout"` // models write both
	escalation
}

// An escalation is a model's wish to run a command outside the sandbox.
type escalation struct {
	Escalated     bool   `json:"with_escalated_permissions"`
	Justification string `json:"justification"`
}

// escalationSchema describes it. A model that is not told takes what it does not see
// for what does not run.
const escalationSchema = `"with_escalated_permissions":{"type":"boolean","description":"ask the user to let it run outside the sandbox; ` +
	`inside it sees and signals no processes but its own"},` +
	`"justification":{"type":"string","description":"why, if it asks for that; one sentence for the user"}`

// command is an argument list; some models give one string, which is meant for a shell.
type command []string

func (c *command) UnmarshalJSON(b []byte) error {
	var line string
	if json.Unmarshal(b, &line) == nil {
		*c = command{"bash", "-lc", line}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(c))
}

func parseShell(arguments string) (shellArgs, error) {
	var a shellArgs
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return a, fmt.Errorf("failed to parse function arguments: %v", err)
	}
	if len(a.Command) == 0 || a.Command[0] == "" {
		return a, errors.New("failed to parse function arguments: command is empty")
	}
	if a.Timeout == 0 {
		a.Timeout = a.Alias
	}
	return a, nil
}

// Run runs the command of one call, if policy lets it.
func (s *Shell) Run(ctx context.Context, call Call) Result {
	a, err := parseShell(call.Arguments)
	if err != nil {
		return failed(err.Error())
	}
	spec := proc.Spec{
		Argv: a.Command, Dir: within(call.Settings.Cwd, a.Workdir), Timeout: s.timeout(a),
		Grace: s.Grace, Bound: stopBound, Env: s.environ(),
	}
	l, instead := s.clear(ctx, call, spec, a.escalation)
	if instead != nil {
		return *instead
	}
	res, out, err := s.run(ctx, call, l.spec)
	if err != nil {
		return notRun(ctx, err)
	}
	tellAppeared(ctx, call, l.box)
	tellLeft(ctx, call, res)
	c := out.command(res)
	question, hint := l.denied(res, c)
	if question != nil {
		return *question
	}
	result := finished(res, c, spec.Timeout, hint)
	result.Diff = s.Changes.ran(ctx, call)
	return result
}

// A launch is a command that policy lets run.
type launch struct {
	spec   proc.Spec
	rules  policy.Rules
	ruling policy.Ruling
	box    *sandbox.Confinement // nil: not confined
}

// clear asks policy about a command and puts the sandbox around it. If it must
// not run, or not yet, or is a patch, the second result is the call's.
func (s *Shell) clear(ctx context.Context, call Call, spec proc.Spec, e escalation) (launch, *Result) {
	if found, ok := patch.Extract(spec.Argv); ok && s.Patch != nil {
		res := s.Patch.apply(ctx, call, found.Patch, within(spec.Dir, found.Dir))
		return launch{}, &res
	}
	l := launch{spec: spec, rules: s.rules(call)}
	l.ruling = l.rules.Command(policy.CommandRequest{
		Argv: spec.Argv, Cwd: spec.Dir, Escalated: e.Escalated, Answer: call.Grant,
	})
	var instead Result
	switch l.ruling.Verdict {
	case policy.Refuse:
		instead = failed(l.ruling.Text)
		return l, &instead
	case policy.Ask:
		instead = ask(spec, l.ruling.Text, e.Justification)
		return l, &instead
	}
	if l.ruling.Harden {
		l.spec.Env = policy.Harden(l.spec.Env)
	}
	box, err := s.confine(&l.spec, call, l.ruling)
	if err != nil {
		instead = failed("the command was not run: " + err.Error())
		return l, &instead
	}
	l.box = box
	tell(ctx, call, append(box.Notes(), l.ruling.Remarks()...))
	if !l.ruling.Harden && l.ruling.Mode != protocol.SandboxReadOnly { // it may write
		s.Changes.before(ctx, call)
	}
	return l, nil
}

// denied says what follows if the sandbox kept the command from doing its work: a
// question, if policy says to ask then, or a hint to the model.
func (l launch) denied(res proc.Result, c protocol.CommandResult) (question *Result, hint string) {
	if l.box == nil || res.Stopped {
		return nil, ""
	}
	what, denied := l.box.Denied(sandbox.Attempt{Dir: l.spec.Dir, Result: res, Output: c.Output})
	if !denied {
		return nil, ""
	}
	hint = l.rules.Denied().Text + ": " + what
	if l.ruling.Verdict != policy.RunConfinedAskOnDenial {
		return nil, hint
	}
	q := ask(l.spec, hint, "")
	q.Ask.Tried = &c // what it did is not lost if the answer is no
	return &q, ""
}

// tellAppeared tells of protected paths that a command has made, which cannot be
// kept from happening.
func tellAppeared(ctx context.Context, call Call, box *sandbox.Confinement) {
	for _, path := range box.Appeared() {
		tell(ctx, call, []string{"the command made " + path + ", which is protected from now on; look at it before you trust it"})
	}
}

// tellLeft tells of what could not be ended.
func tellLeft(ctx context.Context, call Call, res proc.Result) {
	if words := left(res); words != "" {
		tell(ctx, call, []string{"the command left something running: " + strings.TrimSpace(words)})
	}
}

// tell shows notes to people, each once in a conversation.
func tell(ctx context.Context, call Call, notes []string) {
	for _, text := range notes {
		if !call.Warned[text] {
			_ = call.Host.Record(ctx, &protocol.Notice{Text: text, Warn: true}) // a stop or a full disk is told elsewhere
		}
	}
}

// rules are what is in force for a call.
func (s *Shell) rules(call Call) policy.Rules {
	return policy.Rules{
		Approval: call.Settings.Approval, Mode: call.Settings.Sandbox.Mode,
		Confinable: sandbox.Probe().Missing() == "", Grants: call.Grants,
	}
}

// ask asks a person before the command runs.
func ask(spec proc.Spec, why, justification string) Result {
	if justification != "" {
		why = justification + " (" + why + ")"
	}
	return Result{Ask: &protocol.ApprovalRequested{
		Kind: protocol.ApproveCommand, Command: spec.Argv, Cwd: spec.Dir, Reason: why,
	}}
}

// confine puts the sandbox that the ruling asks for around the command.
func (s *Shell) confine(spec *proc.Spec, call Call, r policy.Ruling) (*sandbox.Confinement, error) {
	if r.Verdict == policy.RunUnconfined {
		return nil, nil
	}
	p := call.Settings.Sandbox
	p.Mode = r.Mode
	box, err := sandbox.New(p, sandbox.Place{
		Cwd: call.Settings.Cwd, Home: s.Home, Env: spec.Env, PIDNamespace: s.PIDNamespace,
	})
	if err != nil {
		return nil, err
	}
	if !p.NetworkAccess {
		spec.Env = append(spec.Env, "CODEX_SANDBOX_NETWORK_DISABLED=1")
	}
	return box, box.Set(spec)
}

// run runs a command: its process is recorded before it does anything.
func (s *Shell) run(ctx context.Context, call Call, spec proc.Spec) (proc.Result, *output, error) {
	out := newOutput(call.Host)
	argv := spec.Argv
	cmd, err := s.Spawner.Start(ctx, spec, out.take)
	if err != nil {
		return proc.Result{}, nil, err
	}
	id, err := json.Marshal(cmd.Identity())
	if err == nil {
		err = call.Host.Record(ctx, &protocol.CommandStarted{Call: call.ID, Command: argv, Cwd: spec.Dir, Process: id})
	}
	if err != nil { // nothing ran: the command was not released
		cmd.Stop(err)
		cmd.Wait()
		return proc.Result{}, nil, err
	}
	cmd.Release()
	res := cmd.Wait()
	out.flush()
	return res, out, nil
}

func (s *Shell) environ() []string {
	if s.Environ == nil {
		return os.Environ()
	}
	return s.Environ()
}

func (s *Shell) timeout(a shellArgs) time.Duration {
	switch {
	case a.Timeout > 0:
		return time.Duration(a.Timeout * float64(time.Millisecond))
	case s.Timeout > 0:
		return s.Timeout
	}
	return defaultTimeout
}

// within returns dir, which may be relative, as seen from base.
func within(base, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(base, dir)
}

func failed(text string) Result {
	return Result{Output: protocol.ToolOutput{Output: text, Failed: true}}
}

// notRun is the result of a command that could not be started.
func notRun(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return Result{Output: protocol.ToolOutput{Aborted: true}}
	}
	return failed("failed to start the command: " + err.Error())
}

// An output is what a command prints, passed on and kept.
type output struct {
	host    Host
	capture proc.Capture
	text    [2]decoder
}

func newOutput(h Host) *output { return &output{host: h} }

var kinds = [2]protocol.DeltaKind{proc.Stdout: protocol.DeltaStdout, proc.Stderr: protocol.DeltaStderr}

func (o *output) take(s proc.Stream, b []byte) { o.put(s, o.text[s].decode(b)) }

func (o *output) put(s proc.Stream, text string) {
	if text == "" {
		return
	}
	o.capture.Write(s, []byte(text))
	o.host.Write(kinds[s], text)
}

// flush passes on what an incomplete character at the end held back.
func (o *output) flush() {
	for s := range o.text {
		o.put(proc.Stream(s), o.text[s].rest())
	}
}

// command is how the command ended, with what it printed.
func (o *output) command(r proc.Result) protocol.CommandResult {
	c := result(r)
	c.Output, c.Omitted = o.capture.Text(), o.capture.Omitted()
	if c.Omitted == 0 {
		for _, rg := range o.capture.StderrRanges() {
			c.Stderr = append(c.Stderr, [2]int{int(rg.Start), int(rg.End)})
		}
	}
	return c
}

// finished makes the output of a call from how its command ended.
func finished(r proc.Result, c protocol.CommandResult, timeout time.Duration, hint string) Result {
	out := protocol.ToolOutput{Command: &c, Elapsed: r.Duration}
	shown := left(r) + protocol.Shorten(c.Output)
	switch {
	case r.Stopped:
		out.Aborted, out.Output = true, shown
	case r.TimedOut:
		out.Failed = true
		out.Output = fmt.Sprintf("the command was stopped because it took longer than %v\n%s", timeout, shown)
	case r.ExitCode < 0 && r.Err != nil:
		out.Failed = true
		out.Output = strings.TrimSpace(fmt.Sprintf("failed to run the command: %v\n%s", r.Err, shown))
	default:
		out.Failed = r.ExitCode != 0
		out.Output = answer(shown, r, hint)
	}
	return Result{Output: out}
}

// answer is the form in which models expect a command's output.
func answer(text string, r proc.Result, hint string) string {
	var a struct {
		Output   string `json:"output"`
		Metadata struct {
			ExitCode int     `json:"exit_code"`
			Signal   string  `json:"signal,omitempty"`
			Duration float64 `json:"duration_seconds"`
			Sandbox  string  `json:"sandbox,omitempty"`
		} `json:"metadata"`
	}
	a.Output, a.Metadata.Sandbox = text, hint
	a.Metadata.ExitCode, a.Metadata.Signal = r.ExitCode, r.Signal
	a.Metadata.Duration = float64(r.Duration.Round(100*time.Millisecond).Milliseconds()) / 1000
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(a) // strings and numbers: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// Reclaim ends what is left of a command after a crash.
func Reclaim(_ context.Context, process json.RawMessage) (int, error) {
	var id tree.Identity
	if err := json.Unmarshal(process, &id); err != nil {
		return 0, fmt.Errorf("read what was recorded of a process: %w", err)
	}
	return tree.Reclaim(id)
}
