package transcript

import (
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// applyBackground folds the events of background commands. Their output comes as
// deltas of an item that has the same name.
func (t *Transcript) applyBackground(e p.Event) []*Item {
	switch b := e.Body.(type) {
	case *p.BackgroundStarted:
		t.Running = append(t.Running, *b)
		return t.put(e, b.ID.Item().String(), Background, Open, func(it *Item) {
			it.Command, it.Cwd, it.Background = b.Command, b.Cwd, b.ID
		})
	case *p.BackgroundEnded:
		t.Running = slices.DeleteFunc(t.Running, func(r p.BackgroundStarted) bool { return r.ID == b.ID })
		status := Done
		switch {
		case b.Reason != p.Completed:
			status = Interrupted
			if t.Stopping {
				t.stats.cut++
			}
		case b.Result.ExitCode != 0:
			status = Failed
		}
		t.stats.killed += b.Result.Killed
		return t.put(e, b.ID.Item().String(), Background, status, func(it *Item) {
			c := b.Result
			it.Output, it.Omitted, it.ExitCode, it.Signal, it.Killed, it.Background = c.Output, c.Omitted, c.ExitCode, c.Signal, c.Killed, b.ID
		})
	}
	return nil
}
