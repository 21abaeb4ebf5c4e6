// Package transcript turns events into what a person is shown: a list of
// [Item], each of which opens, grows and closes. It is the only such fold; the
// terminal UI, human command-line output and a web page are drawings of it.
//
// It is pure, and costs the same for the ten-thousandth item as for the first.
package transcript

import (
	"slices"
	"strconv"
	"strings"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Kind says what an item shows.
type Kind string

// The kinds of item.
const (
	User       Kind = "user"       // what the user said
	Message    Kind = "message"    // what the model said
	Reasoning  Kind = "reasoning"  // what it thought
	Call       Kind = "call"       // a tool at work: a command if Command is set, a patch if Changes is
	Background Kind = "background" // a command that went on after its call
	Plan       Kind = "plan"
	Notice     Kind = "notice"
	Retry      Kind = "retry"
	End        Kind = "end" // how a turn ended, unless it just completed
)

// A Status says how far an item is.
type Status string

// The statuses.
const (
	Open        Status = "open"
	Asking      Status = "asking" // it waits for a person
	Done        Status = "done"
	Failed      Status = "failed"
	Interrupted Status = "interrupted" // before its end
	Declined    Status = "declined"
)

// An Item is one thing to show. Its ID stays the same while it changes.
type Item struct {
	ID     string
	Kind   Kind
	Turn   p.TurnID
	Status Status
	Start  time.Time
	End    time.Time

	Text       string        // of a message, reasoning, user message, notice, end
	Retry      *p.ModelRetry // the last one, of a retry
	First      bool          // of a user message: it began its turn
	Tool       string        // of a call
	Server     *p.MCPTool    // of a call: the tool of an MCP server
	Waiting    bool          // of a call: it has not begun, as another one runs
	Arguments  string
	Command    []string
	Cwd        string
	Output     string // of a call: what it printed so far, or what it answered
	Omitted    int64
	ExitCode   int    // -1 if a signal ended it, or it did not run
	Signal     string // that ended it
	TimedOut   bool
	Killed     int
	Background p.BackgroundID // of a background command, and of the call that started one
	Approval   *p.ApprovalRequested
	Progress   string                    // of a call that runs: how far it is
	Questions  []*p.ElicitationRequested // of a call that runs: what an MCP server asks, and no client has answered
	Changes    []Change                  // of a patch
	Patch      *p.PatchResult
	Plan       []p.PlanStep
	Images     []string // of a user message or an answer: data URLs or addresses
	Warn       bool

	ran   bool            // a command of it was started, and may still run
	grown strings.Builder // behind Text or Output while it is open: adding to it copies nothing
}

// A Transcript is what there is to show. The zero value is empty.
type Transcript struct {
	Items []*Item
	// Completions makes the end of a turn that completed an item, too. Set it before the
	// first event.
	Completions bool

	Title    string
	Settings p.Settings
	Hold     *p.Held // the limit that the turn waits for, if any
	Usage    p.Usage // of the whole conversation
	Active   bool
	Stopping bool
	Turn     p.TurnID
	Started  time.Time             // of the turn
	Running  []p.BackgroundStarted // background commands
	Diff     string                // what the turn has changed in files so far
	Inputs   []p.ReturnedInput     // messages that wait
	Returned []p.ReturnedInput     // messages that were not delivered; those that were deleted until the next turn
	Changes  []*TurnChanges        // what turns did to files; only of those that did, or ran commands

	byID    map[string]*Item
	patches map[string]patchStart // by the name of the patch
	patchOf map[p.CallID]patchStart

	stats  stats
	diffed bool     // the turn has reported what it changed
	begun  p.TurnID // the turn whose first message was seen
	retry  *Item    // the last one, until something comes of it
}

// stats is what the last line of a cut turn tells.
type stats struct {
	cut    int // commands and calls that were cut
	killed int
	kept   bool // there is a partial reply

	patched map[string]bool // files that patches changed
}

// files is the number of files that the turn changed: by its diff, which knows
// of commands as well and of what was changed back, or else by its patches.
func (t *Transcript) files() int {
	if t.diffed {
		return len(ParseDiff(t.Diff))
	}
	return len(t.stats.patched)
}

// Apply folds one event, deltas included, and returns the items that it added
// or changed.
func (t *Transcript) Apply(e p.Event) []*Item {
	t.applyChanges(e)
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		t.Settings = b.Settings
	case *p.Configured:
		t.Settings = b.Settings
	case *p.Renamed:
		t.Title = b.Title
	case *p.TurnStarted:
		t.Active, t.Stopping, t.Turn, t.Started, t.stats = true, false, e.Turn, e.Time, stats{}
		t.Returned = Returned(t.Returned, b)
		t.Diff, t.diffed = "", false
		if b.Compact {
			return t.summing(e)
		}
	case *p.TurnDiff:
		t.Diff, t.diffed = b.Diff, true
	case *p.StopRequested:
		t.Stopping = true
	case *p.InputAccepted:
		t.Inputs = append(t.Inputs, p.ReturnedInput{Input: b.Input, Mode: b.Mode, Content: b.Content, Ref: b.Ref})
	case *p.InputEdited:
		for i := range t.Inputs {
			if t.Inputs[i].Input == b.Input {
				t.Inputs[i].Content = b.Content
			}
		}
	case *p.InputReturned:
		for _, in := range b.Inputs {
			t.dropInput(in.Input)
		}
		t.Returned = Returned(t.Returned, b)
	case *p.ReturnedResolved:
		t.Returned = Returned(t.Returned, b)
	default:
		return t.applyItem(e)
	}
	return nil
}

func (t *Transcript) applyItem(e p.Event) []*Item {
	switch b := e.Body.(type) {
	case *p.UserMessage:
		t.dropInput(b.Input)
		return t.put(e, "u"+b.Item.String(), User, Done, func(it *Item) {
			it.Text, it.Images, it.First = p.Written(b.Content), images(b.Content), t.begun != e.Turn
			t.begun = e.Turn
		})
	case *p.AssistantMessage:
		t.stats.kept = t.stats.kept || b.Partial
		return t.put(e, b.Item.String(), Message, ended(b.Partial), func(it *Item) { it.Text = b.Text })
	case *p.Reasoning:
		return t.put(e, b.Item.String(), Reasoning, ended(b.Partial), func(it *Item) { it.Text = b.Text })
	case *p.Delta:
		return t.delta(e, b)
	case *p.ModelRequested:
		made := t.retryMade(e)
		if b.Compact {
			return append(made, t.summing(e)...)
		}
		return made
	case *p.ModelEnded:
		if b.Error == nil {
			t.retry = nil
		}
		if b.Usage != nil {
			t.Usage = t.Usage.Add(*b.Usage)
		}
	case *p.ModelRetry:
		return t.retrying(e, b)
	case *p.Held:
		t.Hold = b
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) { it.Text, it.Warn = HoldText(b), true })
	case *p.HoldEnded:
		t.Hold = nil
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) { it.Text = holdEndedText(b) })
	case *p.Notice:
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) { it.Text, it.Warn = b.Text, b.Warn })
	case *p.Damaged:
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) {
			it.Text, it.Warn = "a record could not be read; its bytes are in "+b.File, true
		})
	case *p.Compacted:
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) { it.Text = "the conversation so far was summarised for the model" })
	case *p.Imported:
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) {
			it.Text = "the conversation up to here was imported from " + b.Agent + " (session " + b.Session + ")"
			if b.Parent != "" {
				it.Text += "; it is that of a subagent, which session " + b.Parent + " started"
			}
		})
	case *p.Reverted:
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) {
			it.Text = "turn " + strconv.Itoa(int(b.Before)) + " and later turns were reverted"
		})
	case *p.Undone:
		if b.Of == t.Turn {
			t.Diff = ""
		}
		return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) { it.Text = undone(b) })
	case *p.TurnEnded:
		return t.endTurn(e, b)
	default:
		return t.applyCall(e)
	}
	return nil
}

func (t *Transcript) applyCall(e p.Event) []*Item {
	switch b := e.Body.(type) {
	case *p.ToolCall:
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) { it.Tool, it.Arguments, it.Waiting = b.Name, b.Arguments, true })
	case *p.CallStarted:
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) { it.Start, it.Approval, it.Waiting = e.Time, nil, false })
	case *p.CommandStarted:
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) {
			it.Command, it.Cwd, it.Start, it.ran, it.Waiting = b.Command, b.Cwd, e.Time, true, false
		})
	case *p.ServerCallStarted:
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) {
			it.Server, it.Arguments, it.Start, it.Waiting = &b.Tool, string(b.Arguments), e.Time, false
		})
	case *p.ApprovalRequested:
		return t.put(e, b.Call.String(), Call, Asking, func(it *Item) {
			it.Approval, it.ran, it.Waiting = b, false, false // if it had run, it does no more
			if b.MCP != nil {
				it.Server = b.MCP
			}
			if len(b.Command) > 0 && b.MCP == nil {
				it.Command, it.Cwd = b.Command, b.Cwd
			}
			if b.Kind == p.ApprovePatch {
				it.Changes, it.Cwd = Changes(b.Detail), b.Cwd
			}
		})
	case *p.ApprovalResolved:
		status := Open
		if b.Decision == p.Denied {
			status = Declined
		}
		return t.put(e, b.Call.String(), Call, status, func(it *Item) { it.Approval = nil })
	case *p.PatchStarted:
		if b.Undoes != 0 || b.Command != (p.CallID{}) {
			return nil // shown when it is done, or by the command
		}
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) {
			it.Changes, it.Cwd, it.Start = Changes(b.Changes), b.Cwd, e.Time
		})
	case *p.PlanUpdated:
		return t.put(e, "p"+b.Call.String(), Plan, Done, func(it *Item) { it.Text, it.Plan = b.Explanation, b.Plan })
	case *p.ToolOutput:
		return t.output(e, b)
	case *p.ElicitationRequested:
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) { it.Questions = append(it.Questions, b) })
	case *p.ElicitationResolved:
		return t.put(e, b.Call.String(), Call, Open, func(it *Item) {
			it.Questions = slices.DeleteFunc(it.Questions, func(q *p.ElicitationRequested) bool { return q.Number == b.Number })
		})
	default:
		return t.applyBackground(e)
	}
}

// summing says what the message is that comes next: it is no answer to anybody.
func (t *Transcript) summing(e p.Event) []*Item {
	return t.put(e, "n"+seq(e), Notice, Done, func(it *Item) { it.Text = "summarising the conversation so far for the model…" })
}

func ended(partial bool) Status {
	if partial {
		return Interrupted
	}
	return Done
}

func seq(e p.Event) string { return strconv.FormatUint(uint64(e.Seq), 10) }

// put changes the item with the given id, adding it if it is new.
func (t *Transcript) put(e p.Event, id string, k Kind, s Status, set func(*Item)) []*Item {
	it := t.item(e, id, k)
	it.Status = s
	if s != Open && s != Asking {
		it.End = e.Time
	}
	set(it)
	return []*Item{it}
}

// Item returns the item with an id, nil if there is none.
func (t *Transcript) Item(id string) *Item { return t.byID[id] }

func (t *Transcript) item(e p.Event, id string, k Kind) *Item {
	if it := t.byID[id]; it != nil {
		return it
	}
	if t.byID == nil {
		t.byID = map[string]*Item{}
	}
	it := &Item{ID: id, Kind: k, Turn: e.Turn, Start: e.Time}
	t.byID[id] = it
	t.Items = append(t.Items, it)
	return it
}

// delta adds a piece to an open item. What is already there is not added again.
func (t *Transcript) delta(e p.Event, d *p.Delta) []*Item {
	kind := map[p.DeltaKind]Kind{p.DeltaMessage: Message, p.DeltaReasoning: Reasoning}[d.Kind]
	if kind == "" {
		kind = Call
	}
	it := t.item(e, d.Item.String(), kind)
	if it.Status == "" {
		it.Status = Open
	}
	if it.Status != Open {
		return nil
	}
	if d.Kind == p.DeltaProgress {
		lines := strings.Split(strings.TrimRight(d.Text, "\n"), "\n")
		it.Progress = lines[len(lines)-1]
		return []*Item{it}
	}
	text := &it.Text
	if kind == Call {
		text = &it.Output
	}
	if gap := d.Offset - int64(len(*text)) - it.Omitted; gap > 0 {
		it.Omitted += gap
	} else if gap < 0 {
		return nil
	}
	it.grown.WriteString(d.Text)
	*text = it.grown.String()
	if kind == Call {
		it.bound()
	}
	return []*Item{it}
}

func (t *Transcript) output(e p.Event, b *p.ToolOutput) []*Item {
	status := Done
	switch it := t.byID[b.Call.String()]; {
	case b.Aborted:
		status = Interrupted
		if it != nil && it.ran { // else there was nothing to kill
			t.stats.cut++
		}
	case it != nil && it.Status == Declined:
		status = Declined
	case b.Failed || b.Command != nil && (b.Command.ExitCode != 0 || b.Command.TimedOut):
		status = Failed
	}
	return t.put(e, b.Call.String(), Call, status, func(it *Item) {
		it.Approval, it.Patch, it.Progress, it.Questions, it.Waiting = nil, b.Patch, "", nil, false
		if b.Elapsed > 0 { // in a copy of a conversation all times are that of the copy
			it.Start = e.Time.Add(-b.Elapsed)
		}
		if b.Patch != nil {
			t.patched(it)
		}
		it.Output, it.Images = Printed(b), images(b.Content)
		c := b.Command
		if c == nil {
			return
		}
		t.stats.killed += c.Killed
		it.Omitted, it.ExitCode, it.Signal, it.TimedOut, it.Killed = c.Omitted, c.ExitCode, c.Signal, c.TimedOut, c.Killed
		it.Background = c.Background
	})
}

// patched notes what a patch did, once that is known.
func (t *Transcript) patched(it *Item) {
	if !it.Patch.Applied {
		return
	}
	it.Changes = withDiff(it.Changes, it.Patch.Diff, it.Cwd)
	if t.stats.patched == nil {
		t.stats.patched = map[string]bool{}
	}
	for _, c := range it.Changes {
		t.stats.patched[c.Path] = true
	}
}

func (t *Transcript) endTurn(e p.Event, b *p.TurnEnded) []*Item {
	t.Active, t.Stopping, t.Hold = false, false, nil
	made := t.retryMade(e)
	t.retry = nil
	if b.Reason == p.Completed && t.Completions {
		return append(made, t.put(e, "e"+seq(e), End, Done, func(it *Item) { it.Text = "done in " + seconds(b.Elapsed) })...)
	}
	if b.Reason == p.Completed {
		return made
	}
	t.stats.killed = max(t.stats.killed, b.Killed)
	return append(made, t.put(e, "e"+seq(e), End, Done, func(it *Item) {
		it.Text, it.Warn = endLine(b, t.stats, t.files()), b.Reason == p.Failed || b.Reason == p.Crashed
	})...)
}

// retryMade says that nothing waits for a retry any more.
func (t *Transcript) retryMade(e p.Event) []*Item {
	if t.retry == nil || t.retry.Status == Done {
		return nil
	}
	t.retry.Status, t.retry.End = Done, e.Time
	return []*Item{t.retry}
}

// images are those of a content.
func images(content []p.Content) (list []string) {
	for _, c := range content {
		if c.Type == p.ContentImage {
			list = append(list, c.ImageURL)
		}
	}
	return list
}

// retrying shows the retries of a request as one item.
func (t *Transcript) retrying(e p.Event, b *p.ModelRetry) []*Item {
	if t.retry == nil {
		t.retry = t.item(e, "r"+seq(e), Retry)
	}
	it := t.retry
	it.Status, it.Warn, it.Start, it.End, it.Retry = Open, true, e.Time, time.Time{}, b
	it.Text = "retry " + strconv.Itoa(b.Attempt) + " of " + strconv.Itoa(b.Max) + " in " + seconds(b.Wait) + ": " + b.Reason
	return []*Item{it}
}

func (t *Transcript) dropInput(id p.InputID) {
	t.Inputs = slices.DeleteFunc(t.Inputs, func(in p.ReturnedInput) bool { return in.Input == id })
}

// HoldText says what a turn waits for that is held at a limit, and until when.
func HoldText(b *p.Held) string {
	text := "waiting: a limit of the model service is reached (" + b.Error.Message + ")"
	if !b.Until.IsZero() {
		text += "; it is lifted at " + b.Until.Local().Format(time.DateTime)
	}
	if b.Resume && !b.Until.IsZero() {
		return text + ", and the turn resumes then, or when a process opens the conversation later"
	}
	return text
}

func holdEndedText(b *p.HoldEnded) string {
	if b.Settings != nil {
		return "trying again with " + b.Settings.Model
	}
	return "trying again"
}
