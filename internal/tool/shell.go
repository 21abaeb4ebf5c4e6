package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/tree"
	"github.com/fermata-agent/fermata/internal/tool/args"
	"github.com/fermata-agent/fermata/protocol"
)

// A Shell runs commands and waits for their end.
type Shell struct {
	Spawner *proc.Spawner
	Timeout time.Duration // for calls that name none; 0 is two minutes
	Grace   time.Duration // between TERM and KILL; 0 is that of package proc
	Home    string        // fermata's own directory, which commands must not touch
	// OtherHomes and Guarded are other paths that commands must not change, and Secrets
	// those that they must not read, see sandbox.Place.
	OtherHomes, Guarded, Secrets []string
	Environ                      func() []string // what commands get; nil is everything
	Changes                      *Changes        // what this turn changed; may be nil
	Patch                        *Patch          // carries out calls of apply_patch; nil runs them like any command
	CanAsk                       bool            // offer to run a command outside the sandbox, since a client can be asked
	NoEscalation                 bool            // keeps what is approved inside the sandbox

	// Prefixes returns what was decided for good about commands in a directory. May be nil.
	Prefixes func(dir string) []policy.PrefixRule

	// CommandDir returns a directory with the command apply_patch, which is put in front
	// of the PATH of commands; "" if there is none. Nil means that too.
	CommandDir func() string

	PIDNamespace bool // hide other processes from confined commands
}

const defaultTimeout = 2 * time.Minute

// stopBound is the longest that stopping a command may take. It is shorter than
// what a turn waits for its workers, so that the turn learns how it went.
const stopBound = time.Second

// shellSchema is the parameters of shell. Models write timeout as well.
var shellSchema = &args.Schema{
	Tool: "shell", Bare: "command", Rights: askRights, Example: `{"command":["bash","-lc","go test ./..."],"workdir":"server"}`,
	Params: append([]args.Param{
		{Name: "command", Type: args.Command, Required: true, Description: "The command and its arguments.", Aliases: []string{"cmd", "argv", "args", "script"}},
		{Name: "workdir", Type: args.String, Description: "The directory to run it in. Default: the working directory of the conversation.", Aliases: []string{"cwd", "dir", "directory"}},
		{Name: "timeout_ms", Type: args.Number, Description: "Stop the command after this many milliseconds. Default: 120000.", Aliases: []string{"timeout"}},
	}, escalationParams...),
}

// escalationParams ask to run a command outside the sandbox. They are offered only
// where a client can be asked.
var escalationParams = []args.Param{
	{
		Name: "with_escalated_permissions", Type: args.Boolean,
		Description: "Ask the user to let the command run outside the sandbox. Use it only if the sandbox keeps an important command from working; " +
			"inside it a command sees and signals only its own processes.",
		Aliases: []string{"escalated", "sandbox_permissions_escalated"},
	},
	{Name: "justification", Type: args.String, Description: "With with_escalated_permissions: one sentence for the user that says why.", Aliases: []string{"reason_for_escalation"}},
	{Name: "sandbox_permissions", Type: args.String, Hidden: true}, // another form of the first
}

const (
	askRights = "To run a command outside the sandbox, call again with with_escalated_permissions set to true and a justification: then the user is asked."
	noRights  = "Commands run inside the sandbox here, and no client can be asked to let them out of it: call again without this parameter."
)

// withoutEscalation is a schema that does not offer to ask for more than the
// sandbox allows.
func withoutEscalation(s *args.Schema) *args.Schema {
	list := slices.Clone(s.Params)
	for i, p := range list {
		list[i].Hidden = p.Hidden || p.Name == "with_escalated_permissions" || p.Name == "justification"
	}
	return &args.Schema{Tool: s.Tool, Params: list, Example: s.Example, Bare: s.Bare, Rights: noRights}
}

var (
	shellUnasked = sync.OnceValue(func() *args.Schema { return withoutEscalation(shellSchema) })
	execUnasked  = sync.OnceValue(func() *args.Schema { return withoutEscalation(execSchema) })
)

// schema is what the tool takes.
func (s *Shell) schema() *args.Schema {
	if s.CanAsk {
		return shellSchema
	}
	return shellUnasked()
}

// Spec describes the tool to the model.
func (s *Shell) Spec() model.ToolSpec {
	schema := s.schema()
	return model.ToolSpec{
		Name: "shell", Kind: protocol.CallFunction,
		Description: schema.Describe("Runs a command and returns its output (stdout and stderr together) and its exit code. " +
			`The command is an argument list and runs without a shell: use ["bash","-lc","..."] for shell syntax. ` +
			"It has no terminal and no input. Processes that it leaves behind are ended with it."),
		Parameters: schema.JSON(),
	}
}

// ReadOnly reports that commands run one at a time.
func (s *Shell) ReadOnly() bool { return false }

// An escalation is a model's request to run a command outside the sandbox.
type escalation struct {
	wanted        bool
	justification string
}

// escalated reads what a call asks for. If that is not known, the second result is the answer.
func escalated(v args.Values, s *args.Schema) (escalation, *Result) {
	e := escalation{v.Bool("with_escalated_permissions", false), v.String("justification")}
	switch strings.ToLower(v.String("sandbox_permissions")) {
	case "", "use_default", "default", "none", "false":
	case "require_escalated", "escalated", "true":
		e.wanted = true
	default:
		r := failure(s.Error(fmt.Sprintf("sandbox_permissions %q is not known. %s", v.String("sandbox_permissions"), s.Rights)))
		return e, &r
	}
	return e, nil
}

// shellArgv is what a call wants to run.
func shellArgv(v args.Values) []string {
	argv, line := v.Command("command")
	if line == "" && isLine(argv) {
		line = argv[0]
	}
	if line != "" {
		return []string{"bash", "-lc", line}
	}
	return argv
}

// isLine reports whether a list is a command line that was put into a list.
func isLine(argv []string) bool {
	return len(argv) == 1 && strings.ContainsAny(strings.TrimSpace(argv[0]), " \t\n|&;<>")
}

// Run runs the command of one call, if policy lets it.
func (s *Shell) Run(ctx context.Context, call Call) Result {
	v, wrong := call.parse(s.schema())
	if wrong != nil {
		return *wrong
	}
	argv := shellArgv(v)
	if len(argv) == 0 || argv[0] == "" {
		return failure(s.schema().Error("the command is empty"))
	}
	spec := proc.Spec{
		Argv: argv, Dir: within(call.Settings.Cwd, v.String("workdir")), Timeout: s.timeout(v),
		Grace: s.Grace, Bound: stopBound, Env: s.environ(),
	}
	wants, wrong := escalated(v, s.schema())
	if wrong != nil {
		return *wrong
	}
	l, instead := s.clear(ctx, call, spec, wants)
	if instead != nil {
		return *instead
	}
	res, out, err := s.run(ctx, call, l.spec)
	l.desk.close()
	if err != nil {
		return notRun(ctx, err)
	}
	warnAppeared(ctx, call, l.box)
	warnLeft(ctx, call, res)
	c := out.command(res)
	question, hint := l.explainDenial(res, c)
	if question != nil {
		return *question
	}
	result := finished(call, res, c, spec.Timeout, hint)
	l.noteRefusal(&result.Output, hint)
	result.Diff = l.desk.diff(ctx, call, s.Changes)
	return result
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

func (s *Shell) timeout(v args.Values) time.Duration {
	if d := milliseconds(v.Number("timeout_ms", 0)); d > 0 {
		return d
	}
	if s.Timeout > 0 {
		return s.Timeout
	}
	return defaultTimeout
}

// milliseconds is a duration that a model wrote, at most a week.
func milliseconds(n float64) time.Duration {
	const week = 7 * 24 * time.Hour
	return time.Duration(min(max(0, n), float64(week/time.Millisecond)) * float64(time.Millisecond))
}

// finished makes the output of a call from how its command ended.
func finished(call Call, r proc.Result, c protocol.CommandResult, timeout time.Duration, hint string) Result {
	out := protocol.ToolOutput{Command: &c, Elapsed: r.Duration}
	shown := left(r) + show(call, c, defaultBytes)
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

// answer is the form in which models expect the output of shell.
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

// within returns dir, which may be relative, as seen from base.
func within(base, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(base, dir)
}

// notRun is the result of a command that could not be started.
func notRun(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return Result{Output: protocol.ToolOutput{Aborted: true}}
	}
	return failure("failed to start the command: " + err.Error())
}
