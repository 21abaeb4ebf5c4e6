package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// What happens outside the model's turns: commands that the user runs, and
// background commands.

// applyShell takes the events of a command that the user ran, and reports whether this
// is one. The model is sent it as a message from the user.
func (h *History) applyShell(e p.Event) bool {
	switch b := e.Body.(type) {
	case *p.UserMessage:
		if !h.notes.Shell || b.Item.Index != 0 {
			return false
		}
		h.notes.Command = strings.TrimPrefix(p.PlainText(b.Content), "!") // reported with its output
		return true
	case *p.ToolCall:
		if b.Call.Response != 0 {
			return false
		}
		var a struct {
			Command string `json:"command"`
		}
		if json.Unmarshal([]byte(b.Arguments), &a) == nil {
			h.notes.Command = a.Command
		}
		return true
	case *p.ToolOutput:
		if b.Call.Response != 0 {
			return false
		}
		h.reportShell(e.Turn, b)
		return true
	}
	return false
}

func (h *History) reportShell(turn p.TurnID, b *p.ToolOutput) {
	h.closeGroup()
	own := h.add(turn, 0, user(shellText(h.notes.Command, b)))
	own.own, own.id = true, b.Call
	h.notes.Command = ""
}

// shellText describes a command that the user ran, and its outcome.
func shellText(command string, b *p.ToolOutput) string {
	var s strings.Builder
	fmt.Fprintf(&s, "I ran this command myself:\n$ %s\n", command)
	switch c := b.Command; {
	case c == nil || b.Aborted:
		s.WriteString(b.Output)
	case c.Signal != "":
		fmt.Fprintf(&s, "It was ended by %s after %.1f s. Output:\n%s", c.Signal, c.Elapsed.Seconds(), p.Shorten(c.Output))
	default:
		fmt.Fprintf(&s, "Exit code %d after %.1f s. Output:\n%s", c.ExitCode, c.Elapsed.Seconds(), p.Shorten(c.Output))
	}
	return s.String()
}

func (h *History) startBackground(b *p.BackgroundStarted) {
	if h.background == nil {
		h.background = map[p.BackgroundID]string{}
	}
	h.background[b.ID] = fmt.Sprintf("session %d: %s", b.ID, strings.Join(b.Command, " "))
}

// endBackground notes a command that has ended: the model believes that it runs.
func (h *History) endBackground(b *p.BackgroundEnded) {
	name, ok := h.background[b.ID]
	if !ok {
		return
	}
	delete(h.background, b.ID)
	h.endedBackground = append(h.endedBackground, name+backgroundEnding(b))
}

func backgroundEnding(b *p.BackgroundEnded) string {
	switch {
	case b.Reason == p.Crashed:
		return " (ended when the program was killed)"
	case b.Reason != p.Completed:
		return " (stopped)"
	case b.Result.Signal != "":
		return " (ended by " + b.Result.Signal + ")"
	}
	return fmt.Sprintf(" (exit code %d)", b.Result.ExitCode)
}

// reportEndedBackground reports to the model which of its background commands
// have ended.
func (h *History) reportEndedBackground() {
	if len(h.endedBackground) == 0 {
		return
	}
	h.add(0, 0, user(tag("environment_context", "\n  These background commands have ended:"+list(h.endedBackground)+"\n")))
	h.endedBackground = nil
}

// runningText says which background commands run, "" if none does.
func (h *History) runningText() string {
	if len(h.background) == 0 {
		return ""
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(h.background)) {
		names = append(names, h.background[id])
	}
	return "These background commands are running:" + list(names)
}

func list(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("\n  - " + name)
	}
	return b.String()
}
