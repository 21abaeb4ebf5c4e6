package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A State is what goes on.
type State struct {
	Transcript *transcript.Transcript // of the conversation
	Begun      bool                   // there is a conversation
	Quitting   bool                   // the program is about to end
	Opening    bool                   // a conversation is being opened
	Busy       bool                   // a turn runs, or a message that starts one is on its way
	Stopping   bool                   // what runs has been asked to stop
	Asking     bool                   // a person is asked something
	AsksPlan   bool                   // a person is asked whether a plan is accepted
	Planning   bool                   // the turn only plans
	Loading    bool                   // the earlier part of the conversation is being read
	Percent    int                    // how far
	Frame      int                    // of the spinner
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Text is the state in words.
func (s State) Text(now time.Time) (string, theme.Role) {
	tr := s.Transcript
	turning := spinner[s.Frame%len(spinner)] + " "
	elapsed := func() string { return Clock(now.Sub(tr.Started)) }
	switch {
	case s.Quitting && s.Busy:
		return turning + "stopping the turn, then quitting…", theme.Warn
	case s.Quitting:
		return turning + "quitting…", theme.Warn
	case s.Stopping:
		return turning + "stopping…", theme.Warn
	case s.Opening:
		return turning + "opening…", theme.Accent
	case s.Asking:
		return "● waiting for your answer " + elapsed(), theme.Warn
	case s.AsksPlan:
		return "● the plan waits for your answer", theme.Warn
	case tr.Active && tr.Hold != nil:
		return "● waiting for a limit " + elapsed() + " · /try-now · Esc stops", theme.Warn
	case tr.Active && s.Planning:
		return turning + "planning " + elapsed() + " · Esc stops", theme.Accent
	case tr.Active:
		return turning + "working " + elapsed() + " · Esc stops", theme.Accent
	case s.Busy:
		return turning + "sending…", theme.Accent
	case s.Loading:
		return fmt.Sprintf("%sloading… %d %%", turning, s.Percent), theme.Accent
	}
	return "ready · /help", theme.Dim
}

// Title is the title of the window.
func (s State) Title() string {
	tr, state := s.Transcript, ""
	switch {
	case s.Asking || tr.Active && tr.Hold != nil || s.AsksPlan:
		state = "● waiting"
	case s.Busy:
		state = "⠧ working"
	case s.Begun:
		state = "✓ done"
	default:
		return "fermata"
	}
	if tr.Title != "" {
		return state + " · " + safetext.Cut(safetext.Line(tr.Title), 40)
	}
	return state + " · fermata"
}

// Line is the state at the left and as many facts as fit at the right.
func (s State) Line(now time.Time, f Facts, width int, t *theme.Theme) string {
	state, role := s.Text(now)
	line := safetext.Cut(state, width)
	rest := Fit(f.list(), width-safetext.Width(line)-3)
	if rest == "" {
		return t.Paint(role, line)
	}
	gap := width - safetext.Width(line) - safetext.Width(rest)
	return t.Paint(role, line) + strings.Repeat(" ", max(1, gap)) + t.Paint(theme.Dim, rest)
}

// Facts are what the turns run with.
type Facts struct {
	Settings   p.Settings                                // in force
	Place      string                                    // the directory, in words
	Context    int64                                     // tokens that the last request and its response took
	Usage      p.Usage                                   // of the conversation
	Cost       func(p.Settings, p.Usage) (float64, bool) // in US dollars, if the price is known; may be nil
	Background int                                       // commands
}

func (f Facts) list() []Fact {
	s := f.Settings
	list := []Fact{{Text: strings.TrimSpace(s.Model + " " + s.Effort), Rank: 9}, {Text: f.Place, Rank: 7}}
	if n := f.Context; n > 0 {
		text := "context " + Tokens(n)
		if s.ContextWindow > 0 {
			text = fmt.Sprintf("%d %% context left", max(0, 100-100*n/s.ContextWindow))
		}
		list = append(list, Fact{Text: text, Rank: 6})
	}
	if f.Usage.Total > 0 {
		list = append(list, Fact{Text: Tokens(f.Usage.Total) + " tokens" + f.cost(), Rank: 3})
	}
	if s.Plan {
		list = append(list, Fact{Text: "plan mode: read-only", Rank: 10})
	} else {
		list = append(list, Fact{Text: string(s.Sandbox.Mode), Rank: 5}, Fact{Text: Asks(s.Approval), Rank: 4})
	}
	if n := f.Background; n > 0 {
		list = append(list, Fact{Text: fmt.Sprintf("%d in background", n), Rank: 8})
	}
	return slices.DeleteFunc(list, func(f Fact) bool { return f.Text == "" })
}

// cost is what the conversation has cost so far, if the model's price is known.
func (f Facts) cost() string {
	if f.Cost == nil {
		return ""
	}
	dollars, ok := f.Cost(f.Settings, f.Usage)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" $%.2f", dollars)
}
