package turn

import (
	"encoding/json"

	p "github.com/fermata-agent/fermata/protocol"
)

// UserShell is the name of the tool that runs a user's own command line. No
// model is offered it.
const UserShell = "user_shell"

// beginShell begins a turn that only runs a command. That the user typed it is
// its approval.
func (d *decision) beginShell(in Shell) error {
	if in.Command == "" {
		return ErrEmpty
	}
	args, err := json.Marshal(map[string]string{"command": in.Command})
	if err != nil {
		return err
	}
	d.add(&p.TurnStarted{Shell: true})
	item := p.ItemID{Turn: d.state.Turn}
	call := p.CallID{Turn: d.state.Turn, Index: 1}
	d.add(
		&p.UserMessage{Item: item, Input: d.state.LastInput + 1, Content: p.Text("!" + in.Command)},
		&p.ToolCall{Call: call, WireID: "user", Kind: p.CallFunction, Name: UserShell, Arguments: string(args)},
		&p.CallStarted{Call: call, Grant: p.Approved},
	)
	return nil
}

// takeKeep makes the command of a call a background command. From then on the
// conversation answers for it, not the call.
func (d *decision) takeKeep(in Keep) error {
	i := d.state.find(in.Started.Call)
	switch {
	case d.state.StopReason != "":
		return ErrStopping
	case i < 0 || d.state.Calls[i].Stage != running:
		return ErrNoBackground
	}
	b := in.Started
	b.ID = d.state.LastBackground + 1
	d.add(&b)
	return nil
}

func (d *decision) takeBackgroundDone(in BackgroundDone) {
	if d.state.background(in.ID) < 0 {
		return // given up before
	}
	reason := p.Completed
	if in.Stopped {
		reason = p.Interrupted
	}
	d.add(&p.BackgroundEnded{ID: in.ID, Reason: reason, Result: in.Result})
}

// loseBackground ends the background commands that were lost, with what is known
// of their output.
func (d *decision) loseBackground(in Lost) {
	for _, b := range d.state.Background {
		if !in.Crash && !in.All && !d.state.own(b) {
			continue
		}
		end := &p.BackgroundEnded{ID: b.ID, Reason: p.Interrupted, Result: p.CommandResult{ExitCode: -1}}
		if in.Crash {
			end.Reason = p.Crashed
		}
		for _, o := range in.Open {
			if o.Item == b.ID.Item() {
				end.Result.Output, end.Result.Stderr = o.Text, o.Stderr
			}
		}
		d.add(end)
	}
}
