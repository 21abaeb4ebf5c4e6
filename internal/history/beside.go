package history

import (
	"encoding/json"
	"fmt"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

// What goes on beside the model's turns: commands that the user runs, and
// background commands.

// applyShell takes the events of a command that the user ran, and reports whether this
// is one. The model hears of it as of something that the user says.
func (h *History) applyShell(e p.Event) bool {
	switch b := e.Body.(type) {
	case *p.UserMessage:
		if !h.turn.Shell || b.Item.Index != 0 {
			return false
		}
		h.turn.Command = strings.TrimPrefix(p.PlainText(b.Content), "!") // told with its output
		return true
	case *p.ToolCall:
		if b.Call.Response != 0 {
			return false
		}
		var a struct {
			Command string `json:"command"`
		}
		if json.Unmarshal([]byte(b.Arguments), &a) == nil {
			h.turn.Command = a.Command
		}
		return true
	case *p.ToolOutput:
		if b.Call.Response != 0 {
			return false
		}
		h.tellShell(e.Turn, b)
		return true
	}
	return false
}

func (h *History) tellShell(turn p.TurnID, b *p.ToolOutput) {
	h.closeGroup()
	h.add(turn, 0, user(shellText(h.turn.Command, b)))
	h.turn.Command = ""
}

// shellText says what the user ran and what came of it.
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

func (h *History) background(b *p.BackgroundStarted) {
	if h.running == nil {
		h.running = map[p.BackgroundID]string{}
	}
	h.running[b.ID] = fmt.Sprintf("session %d: %s", b.ID, strings.Join(b.Command, " "))
}

// backgroundEnded notes a command that did not end by itself: the model believes
// that it runs.
func (h *History) backgroundEnded(b *p.BackgroundEnded) {
	name, ok := h.running[b.ID]
	delete(h.running, b.ID)
	if ok && b.Reason != p.Completed {
		h.lost = append(h.lost, name)
	}
}

// tellLost tells the model which of its background commands are gone.
func (h *History) tellLost() {
	if len(h.lost) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("\n  These background commands were ended, and do not run any more:")
	for _, name := range h.lost {
		b.WriteString("\n  - " + name)
	}
	h.add(0, 0, user(tag("environment_context", b.String()+"\n")))
	h.lost = nil
}
