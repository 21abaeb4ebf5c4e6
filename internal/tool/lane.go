package tool

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/policy"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/turn"
)

// A Laner is a Tool that knows from the arguments of a call what that may run beside.
type Laner interface {
	// Lane depends on the call only, and changes nothing.
	Lane(call Call) turn.Lane
}

// LaneOf says what a call of a tool may run beside. Calls of a tool that is no Laner run beside others if they
// change nothing.
func LaneOf(t Tool, call Call) turn.Lane {
	if h, ok := t.(hidden); ok {
		t = h.Tool
	}
	if l, ok := t.(Laner); ok {
		return l.Lane(call)
	}
	if t.ReadOnly() {
		return turn.Beside
	}
	return turn.Alone
}

// Lane says what a command may run beside, see Shell.lane.
func (e *Exec) Lane(call Call) turn.Lane {
	v, err := e.schema().Parse(call.Arguments)
	if err != nil {
		return turn.Beside // nothing is run: the answer is what is wrong
	}
	wants, wrong := escalated(v, e.schema())
	if wrong != nil {
		return turn.Beside
	}
	return e.Shell.lane(call, proc.Spec{Argv: execArgv(v), Dir: within(call.Settings.Cwd, v.String("workdir"))}, wants)
}

// Lane says what a command may run beside, see lane.
func (s *Shell) Lane(call Call) turn.Lane {
	v, err := s.schema().Parse(call.Arguments)
	if err != nil {
		return turn.Beside
	}
	wants, wrong := escalated(v, s.schema())
	if wrong != nil {
		return turn.Beside
	}
	return s.lane(call, proc.Spec{Argv: shellArgv(v), Dir: within(call.Settings.Cwd, v.String("workdir"))}, wants)
}

// lane says what a command may run beside. Those that run without a question may run beside each other: the model
// asked for them at once. One that applies a patch is a barrier like any patch. What the user has decided for good
// about commands is not looked at here, since that reads files: a command that a rule allows waits like one that asks, and one that
// a rule asks about waits when it has asked.
func (s *Shell) lane(call Call, spec proc.Spec, e escalation) turn.Lane {
	if len(spec.Argv) == 0 {
		return turn.Beside
	}
	if slices.ContainsFunc(spec.Argv, func(a string) bool { return strings.Contains(a, "apply_patch") }) {
		return turn.Alone
	}
	if s.rules(call).Command(request(call, spec, e)).Verdict == policy.Ask {
		return turn.Asks
	}
	return turn.Beside
}

// Lane says that what is typed to one command keeps its order.
func (WriteStdin) Lane(call Call) turn.Lane {
	v, err := stdinSchema.Parse(call.Arguments)
	if err != nil {
		return turn.Beside
	}
	return turn.Lane("session " + strconv.FormatFloat(v.Number("session_id", 0), 'f', -1, 64))
}

// Lane says that plans are taken in order.
func (Plan) Lane(Call) turn.Lane { return "plan" }

// Lane says that pages are fetched side by side, and that questions about them are asked one at a time.
func (f *Fetch) Lane(call Call) turn.Lane {
	if r := f.clear(call, nil, hasNetwork(call.Settings)); r != nil && r.Ask != nil {
		return turn.Asks
	}
	return turn.Beside
}
