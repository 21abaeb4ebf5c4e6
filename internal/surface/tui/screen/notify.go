package screen

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/config"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Notifier lets the terminal notify a user who looks elsewhere.
type Notifier struct {
	Config    config.Screen // what to notify of, and how
	On        bool          // the terminal is to show notifications
	Unfocused bool          // the terminal says that the user looks elsewhere
}

// Watched is what a user may want to hear of.
type Watched struct {
	Approvals int         // that are open
	Questions int         // of MCP servers
	Active    bool        // a turn runs
	Held      bool        // it waits for a limit
	Live      bool        // all that happened before is known
	Ended     p.EndReason // of the last turn
}

// Compare notifies the user of what has happened since.
func (n *Notifier) Compare(before, now Watched) tea.Cmd {
	ended, set := before.Active && !now.Active, n.Config
	switch {
	case !before.Live:
	case now.Approvals > before.Approvals && set.NotifyApproval:
		return n.Notify("fermata asks for an approval")
	case now.Questions > before.Questions && set.NotifyApproval:
		return n.Notify("fermata: an MCP server asks something")
	case now.Held && !before.Held && set.NotifyHold:
		return n.Notify("fermata waits for a limit of the model service")
	case ended && now.Ended == p.Crashed && set.NotifyRecovered: // in the process that we had joined
		return n.Notify("fermata: a crash ended the turn; the conversation is recovered")
	case ended && now.Ended != p.Crashed && set.NotifyTurnEnded:
		return n.Notify("fermata: the turn has ended")
	}
	return nil
}

// Recovered notifies the user that a conversation was recovered after a crash.
func (n *Notifier) Recovered() tea.Cmd {
	if !n.Config.NotifyRecovered {
		return nil
	}
	return n.Notify("fermata: the conversation is recovered after a crash")
}

// Notify rings the terminal's bell, and notifies a user who looks elsewhere in the two ways that terminals know.
func (n *Notifier) Notify(text string) tea.Cmd {
	out := ""
	if n.Config.Bell {
		out += "\a"
	}
	if n.On && n.Unfocused {
		out += ansi.Notify(text) + "\x1b]777;notify;fermata;" + text + "\x1b\\"
	}
	if out == "" {
		return nil
	}
	return tea.Raw(out)
}
