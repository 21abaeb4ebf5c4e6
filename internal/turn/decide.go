package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// Decide returns the events that follow from an input, in order, each with the
// turn that it belongs to. They are to be recorded together. An error is the
// answer to an input that does not fit the state; nothing is to be recorded then.
func (s State) Decide(env Env, in Input) ([]p.Event, error) {
	d := &decision{state: s, env: env}
	if !s.Active {
		err := d.takeIdle(in)
		return d.events, err
	}
	if err := d.take(in); err != nil {
		return nil, err
	}
	_, lost := in.(Lost)
	d.settle(lost)
	return d.events, nil
}

// takeIdle decides when no turn runs.
func (d *decision) takeIdle(in Input) error {
	s := d.state
	switch in := in.(type) {
	case User:
		if err := in.check(); err != nil {
			return err
		}
		if in.Into != 0 {
			return ErrNotSteerable
		}
		in, err := s.withReturned(in)
		if err != nil {
			return err
		}
		d.begin(PendingInput{ID: s.LastInput + 1, Content: in.Content, Ref: in.Ref}, in.Returned...)
	case Next:
		if len(s.Pending) > 0 {
			d.begin(s.Pending[0])
		}
	case ReturnAll:
		d.returnAll()
	case Resolve:
		return d.takeResolve(in)
	case Compact:
		d.add(&p.TurnStarted{Compact: true})
		d.request()
	case TryNow:
		return ErrNoHold
	case Shell:
		return d.beginShell(in)
	case Stop:
		return ErrNothingToStop
	case Approval:
		return ErrNoApproval
	case Elicit, Elicited:
		return ErrNoElicitation
	case Edit, Delete, Keep, BackgroundDone: // a message may wait for the turn that is about to start
		return d.take(in)
	case Lost:
		d.loseBackground(in)
		if in.Crash {
			d.returnAll()
		}
	}
	return nil
}

// begin starts a turn with a message, which may deliver returned ones.
func (d *decision) begin(in PendingInput, returned ...p.InputID) {
	d.add(&p.TurnStarted{})
	full := d.full(in.Content)
	d.add(&p.UserMessage{Item: p.ItemID{Turn: d.state.Turn}, Input: in.ID, Content: in.Content, Ref: in.Ref})
	d.addResolved(returned, p.ResolvedSent, in.ID)
	d.send(full, in.Content)
}

// A decision collects events and keeps the state they lead to.
type decision struct {
	state   State
	env     Env
	crashed bool // after a crash no process is there to start the next turn
	events  []p.Event

	summary string // what the model said when it was asked for a summary
}

// add gives each event its turn. It is the only place where a turn gets its number.
func (d *decision) add(bodies ...p.Body) {
	for _, b := range bodies {
		d.cancelElicitations(b)
		e := p.Event{Turn: d.turnOf(b), Time: d.env.Now, Body: b}
		d.events = append(d.events, e)
		d.state = d.state.Evolve(e)
	}
}

// turnOf returns the turn of an event that happens now.
func (d *decision) turnOf(b p.Body) p.TurnID {
	switch b.(type) {
	case *p.TurnStarted:
		return d.state.Turn + 1
	case *p.BackgroundStarted, *p.BackgroundEnded, *p.ReturnedResolved:
		return 0 // they belong to the conversation
	}
	if !d.state.Active {
		return 0
	}
	return d.state.Turn
}

// take records what the input itself says.
func (d *decision) take(in Input) error {
	switch in := in.(type) {
	case User:
		return d.takeUser(in)
	case Compact, Shell:
		return ErrBusy
	case Keep:
		return d.takeKeep(in)
	case BackgroundDone:
		d.takeBackgroundDone(in)
	case Stop:
		return d.takeStop(in)
	case Approval:
		return d.takeApproval(in)
	case Elicit:
		return d.takeElicit(in)
	case Elicited:
		return d.takeElicited(in)
	case Edit:
		if d.state.input(in.Input) < 0 {
			return ErrNoInput
		}
		if len(in.Content) == 0 {
			return ErrEmpty
		}
		d.add(&p.InputEdited{Input: in.Input, Content: in.Content})
	case Delete:
		i := d.state.input(in.Input)
		if i < 0 {
			return ErrNoInput
		}
		w := d.state.Pending[i]
		d.addReturned(p.ReturnedInput{Input: w.ID, Mode: w.Mode, Content: w.Content, Deleted: true, Ref: w.Ref})
	case Resolve:
		return d.takeResolve(in)
	case ModelItem:
		d.takeItem(in)
	case ModelDone:
		d.takeModelDone(in)
	case RetryDue:
		if d.state.Backoff && d.state.StopReason == "" {
			d.request()
		}
	case HoldDue:
		if d.state.Hold != nil && d.state.Hold.Resume {
			d.endHold(nil)
		}
	case TryNow:
		if d.state.Hold == nil {
			return ErrNoHold
		}
		d.endHold(in.Settings)
	case ToolAsked:
		d.takeAsked(in)
	case ToolDone:
		d.takeToolDone(in)
	case Lost:
		d.takeLost(in)
	}
	return nil
}

// check says what is wrong with a message, whether or not a turn runs.
func (in User) check() error {
	switch {
	case len(in.Content) == 0 && len(in.Returned) == 0:
		return ErrEmpty
	case !slices.Contains([]p.WhenBusy{"", p.Steer, p.Queue, p.Replace}, in.WhenBusy):
		return fmt.Errorf("when busy: %q: %w", in.WhenBusy, ErrWhenBusy)
	case (in.WhenBusy == p.Steer || in.Into != 0) && in.Overrides != nil:
		return ErrSteerSettings
	}
	return nil
}

// takeUser decides what becomes of a message that arrives while a turn runs.
func (d *decision) takeUser(in User) error {
	if err := in.check(); err != nil {
		return err
	}
	s := d.state
	in, err := s.withReturned(in)
	if err != nil {
		return err
	}
	if in.Into != 0 && (in.Into != s.Turn || s.StopReason != "" || s.Compact || s.Shell) {
		return ErrNotSteerable
	}
	accepted := &p.InputAccepted{Input: s.LastInput + 1, Mode: in.WhenBusy, Content: in.Content, Overrides: in.Overrides, Ref: in.Ref}
	switch {
	case s.StopReason != "":
		accepted.After = true
		if accepted.Mode != p.Steer {
			accepted.Mode = p.Queue
		}
	case in.WhenBusy == p.Replace:
		accepted.After = true
		d.add(accepted)
		d.addResolved(in.Returned, p.ResolvedSent, accepted.Input)
		d.add(&p.StopRequested{Reason: p.Replaced})
		return nil
	case in.WhenBusy == "" && in.Overrides == nil:
		accepted.Mode = p.Steer
	case in.WhenBusy == "":
		accepted.Mode = p.Queue
	}
	if accepted.Mode == p.Steer && s.Compact {
		accepted.Mode = p.Queue // a compaction makes no request that it could join
	}
	d.add(accepted)
	d.addResolved(in.Returned, p.ResolvedSent, accepted.Input)
	return nil
}

func (d *decision) takeStop(in Stop) error {
	switch {
	case in.Turn != 0 && in.Turn != d.state.Turn:
		return ErrNothingToStop
	case d.state.StopReason != "":
		return ErrStopping
	}
	reason := in.Reason
	if stopReasons[reason] == "" { // not given, or not one that a stop can have
		reason = p.Interrupted
	}
	d.add(&p.StopRequested{Reason: reason, Error: in.Error})
	return nil
}

func (d *decision) takeApproval(in Approval) error {
	i := d.state.find(in.Call)
	if i < 0 || d.state.Calls[i].Stage != asking || d.state.StopReason != "" {
		return ErrNoApproval
	}
	resolved := &p.ApprovalResolved{Call: in.Call, Decision: in.Decision, Message: in.Message}
	switch in.Decision {
	case p.Approved, p.ApprovedForSession:
		d.add(resolved)
	case p.Denied:
		out := d.state.Calls[i].refusalOutput()
		out.Output = rejectText(in.Message, out.Command)
		d.add(resolved, out)
	case p.Abort:
		d.add(resolved, &p.StopRequested{Reason: p.Interrupted})
	default:
		return fmt.Errorf("%w %q", ErrDecision, in.Decision)
	}
	return nil
}

func (d *decision) takeItem(in ModelItem) {
	s := d.state
	id := p.ItemID{Turn: s.Turn, Response: in.Response, Index: in.Index}
	if s.StopReason != "" || s.Compacting() || !s.unfinished(id) {
		return // what arrives after the stop, or for a summary, is not part of the conversation
	}
	switch b := in.Body.(type) {
	case *p.AssistantMessage:
		b.Item = id
	case *p.Reasoning:
		b.Item = id
	case *p.ToolCall:
		b.Call = id
		if b.WireID == "" { // some local servers give none
			b.WireID = "call_" + strings.ReplaceAll(id.String(), ".", "_")
		}
	default:
		return
	}
	d.add(in.Body)
}

func (d *decision) takeModelDone(in ModelDone) {
	if !d.state.Streaming || in.Response != d.state.Response {
		return
	}
	d.addPartials(in.Open)
	ended := &p.ModelEnded{Response: in.Response, Usage: in.Usage}
	if d.state.StopReason == "" {
		ended.Error = d.withWindow(in.Error)
	}
	d.add(ended)
	d.summary = in.Summary
	if ended.Error != nil {
		in.Error = ended.Error
		d.modelFailed(in)
	}
}

// modelFailed decides what follows from a response that did not work: a
// repaired history, another try, or the end of the turn.
func (d *decision) modelFailed(in ModelDone) {
	for _, c := range slices.Clone(d.state.Calls) {
		d.add(&p.ToolOutput{
			Call: c.ID, Failed: true, Aborted: true,
			Output: "aborted: the model's response broke off before this call ran, so it was not run",
		})
	}
	err := in.Error
	if err.Kind == p.ErrorHistory && err.Call != nil && !slices.Contains(d.state.RefusedCalls, err.Call.WireID) {
		d.repair(*err.Call, in.Refused)
		return
	}
	if err.Kind == p.ErrorHistory && d.reduce(err.Part) || err.Kind == p.ErrorContextLength && d.tooLong(err) || d.hold(err) {
		return
	}
	if retry := d.retry(err, len(in.Open) > 0 || len(d.state.Items) > 0); retry != nil {
		d.add(retry)
		return
	}
	if d.state.Compacting() && d.summariseLocally(err) {
		return
	}
	d.add(&p.StopRequested{Reason: p.Failed, Error: err})
}

// retry is another try of a request that failed, nil if there is none left. A request that failed before its
// response began uses up the tries for requests first, then those for streams; a response that broke
// off uses up those for streams only.
func (d *decision) retry(err *p.Error, began bool) *p.ModelRetry {
	used, most := d.state.Attempts, d.env.Retries()
	began = began || err.Streaming
	n := used.Request + used.Stream + 1
	retry := &p.ModelRetry{Attempt: n, Max: used.Request + most.Stream, Reason: err.Message, Stream: true}
	if !began && used.Request < most.Request {
		retry.Max, retry.Stream = most.Request+most.Stream, false
	}
	if !err.Retry || retry.Stream && used.Stream >= most.Stream {
		return nil
	}
	retry.Wait = d.env.Wait(n, err)
	return retry
}

// repair answers a provider that refuses the history because of one call. It
// does so once for each call, and without using up a retry.
func (d *decision) repair(fault p.CallFault, known *Refused) {
	// A call of the response that just failed has been answered above.
	own := known != nil && known.Call.Turn == d.state.Turn && known.Call.Response == d.state.Response
	if known != nil && !known.Answered && !own && fault.Fault == p.CallWithoutOutput {
		d.add(&p.ToolOutput{Call: known.Call, Output: "aborted", Failed: true, Aborted: true, Repaired: true})
	}
	unknown := known == nil && fault.Fault == p.CallWithoutOutput
	d.add(
		&p.HistoryRepaired{WireID: fault.WireID, Fault: fault.Fault, UnknownCall: unknown},
		&p.Notice{Text: fmt.Sprintf("the model refused the history because of call %s; repaired, trying again", fault.WireID), Warn: true},
	)
	d.request()
}

func (d *decision) takeAsked(in ToolAsked) {
	i := d.state.find(in.Request.Call)
	if i < 0 || d.state.Calls[i].Stage != running {
		return
	}
	if d.state.StopReason != "" {
		d.add(d.state.aborted(d.env.Now, d.state.Calls[i], nil))
		return
	}
	d.add(&in.Request)
}

func (d *decision) takeToolDone(in ToolDone) {
	i := d.state.find(in.Output.Call)
	if i < 0 || d.state.Calls[i].Stage != running {
		return
	}
	c, out := d.state.Calls[i], in.Output
	if out.Elapsed == 0 {
		out.Elapsed = max(0, d.env.Now.Sub(c.Started))
	}
	switch {
	case in.NotRun:
		d.add(d.state.notRun(c))
		return
	case out.Aborted && out.Patch != nil:
		out.Failed = true
		out.Output = abortPatch(d.state.StopReason, out.Elapsed, out.Patch)
	case out.Aborted:
		out.Failed = true
		out.Output = abortText(d.state.StopReason, out.Elapsed, out.Command, out.Output)
	}
	d.add(&out)
	if in.Diff != nil {
		d.add(in.Diff)
	}
}

func (d *decision) takeLost(in Lost) {
	d.loseBackground(in)
	if d.state.Waiting() {
		return // nothing ran: the approval is as good as it was
	}
	d.crashed = in.Crash
	if d.state.StopReason == "" {
		d.add(&p.StopRequested{Reason: p.Crashed})
	}
	d.addPartials(in.Open)
	if d.state.Streaming {
		d.add(&p.ModelEnded{Response: d.state.Response})
	}
	for _, c := range slices.Clone(d.state.Calls) {
		if c.Stage == running {
			out := d.state.aborted(d.env.Now, c, in.Open)
			if patch, ok := in.Patches[c.ID]; ok {
				out.Patch, out.Output = &patch, abortPatch(d.state.StopReason, out.Elapsed, &patch)
			}
			d.add(out)
		}
	}
	d.state.Killed += in.Killed
}

// addPartials records what there is of messages that were not finished.
func (d *decision) addPartials(open []Partial) {
	if d.state.Compacting() {
		return // half a summary is not something that the model said
	}
	for _, o := range open {
		if o.Text == "" || !d.state.unfinished(o.Item) {
			continue
		}
		switch o.Kind {
		case p.DeltaMessage:
			d.add(&p.AssistantMessage{Item: o.Item, Text: o.Text, Partial: true})
		case p.DeltaReasoning:
			d.add(&p.Reasoning{Item: o.Item, Text: o.Text, Partial: true})
		}
	}
}

// settle adds what must follow when nothing of the turn is left running.
func (d *decision) settle(lost bool) {
	s := d.state
	switch {
	case !s.Active: // a compaction has ended it
	case s.Waiting() && (lost || s.Hold != nil):
	case (s.working() || len(s.OwnBackground()) > 0) && !lost && s.StopReason != "", s.Streaming:
	case s.StopReason != "":
		d.end(s.StopReason)
	case len(s.Calls) > 0:
		d.startCalls()
	case s.Backoff:
	case s.Compacting():
		d.endCompaction()
	case s.AskedForTool && s.Response > 0 || slices.ContainsFunc(s.Pending, PendingInput.Joins):
		d.request()
	default:
		d.end(p.Completed)
	}
}

// end closes everything that is open and ends the turn. No other code ends one.
func (d *decision) end(reason p.EndReason) {
	for _, c := range slices.Clone(d.state.Calls) {
		if c.Stage == asking {
			d.add(&p.ApprovalResolved{Call: c.ID, Decision: p.Cancelled})
		}
		d.add(d.state.aborted(d.env.Now, c, nil))
	}
	why := reason
	if d.crashed {
		why = p.Crashed
	}
	d.addReturned(d.state.undelivered(why)...)
	d.add(&p.TurnEnded{
		Reason: reason, Error: d.state.StopError, Killed: d.state.Killed, Repairs: d.state.Repairs,
		Elapsed: max(0, d.env.Now.Sub(d.state.Started)), Returned: len(d.state.Returned),
	})
}

// returnAll returns every message that waits.
func (d *decision) returnAll() { d.addReturned(d.state.undelivered(p.Crashed)...) }

// undelivered returns the messages that will not be delivered because the turn
// ends for the given reason. Those that arrived after the stop start the next
// turn, unless no process is left to start it.
func (s State) undelivered(reason p.EndReason) []p.ReturnedInput {
	if reason == p.Completed || reason == p.Failed && !s.journalFailed() {
		return nil
	}
	var back []p.ReturnedInput
	for _, in := range s.Pending {
		if in.After && reason != p.Crashed && !s.journalFailed() {
			continue
		}
		back = append(back, p.ReturnedInput{Input: in.ID, Mode: in.Mode, Content: in.Content, Ref: in.Ref, Stays: true})
	}
	return back
}

// journalFailed reports whether the turn ends because nothing can be recorded any
// more, so that no other turn can follow.
func (s State) journalFailed() bool { return s.StopError != nil && s.StopError.Kind == p.ErrorJournal }

// aborted is the output of a call that did not come to its end.
func (s State) aborted(now time.Time, c OpenCall, open []Partial) *p.ToolOutput {
	if c.Stage != running {
		return s.notRun(c)
	}
	out := &p.ToolOutput{Call: c.ID, Failed: true, Aborted: true}
	out.Elapsed = max(0, now.Sub(c.Started))
	text := ""
	for _, o := range open {
		if o.Item == c.ID {
			text = o.Text
			out.Command = &p.CommandResult{ExitCode: -1, Output: o.Text, Stderr: o.Stderr, Elapsed: out.Elapsed}
		}
	}
	out.Output = abortText(s.StopReason, out.Elapsed, out.Command, text)
	return out
}

func (s State) notRun(c OpenCall) *p.ToolOutput {
	out := c.refusalOutput()
	out.Aborted = true
	out.Output = notRunText(s.StopReason, out.Command)
	return out
}

// refusalOutput is the output of a call that must not run, or not again: what it did
// before it asked is not lost.
func (c OpenCall) refusalOutput() *p.ToolOutput {
	out := &p.ToolOutput{Call: c.ID, Failed: true, Command: c.tried()}
	if out.Command != nil {
		out.Elapsed = out.Command.Elapsed
	}
	return out
}
