package history

import (
	"fmt"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"
)

func user(text string) *p.PromptItem {
	return &p.PromptItem{Kind: p.PromptUser, Content: p.Text(text)}
}

func tag(name, text string) string { return "<" + name + ">" + text + "</" + name + ">" }

// endings is what the model is sent about a turn that was interrupted.
var endings = map[p.EndReason]string{
	p.Interrupted: "The user stopped your previous turn on purpose after %.1f s.",
	p.Replaced:    "The user stopped your previous turn on purpose after %.1f s, to say something else.",
	p.Crashed:     "Your previous turn was interrupted because the program crashed or was killed, after at least %.1f s.",
}

// abortedText is the message about a turn that was interrupted, or "" if the turn
// completed or failed.
func abortedText(end *p.TurnEnded, notes turnNotes) string {
	form, ok := endings[end.Reason]
	if !ok {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, form, end.Elapsed.Seconds())
	if len(notes.Aborted) > 0 {
		b.WriteString(" These calls were interrupted or not run; those that had started may have had effects, so check before you repeat them:")
		for _, c := range notes.Aborted {
			b.WriteString("\n- " + c)
		}
	}
	if notes.Partial {
		b.WriteString("\nYour last message was cut off where it ends.")
	}
	return tag("turn_aborted", "\n"+b.String()+"\n")
}

// undoneText is the message that its changes to files were undone. It
// belongs to no turn, so that it stays when a turn is reverted.
func undoneText(b *p.Undone) string {
	var s strings.Builder
	fmt.Fprintf(&s, "The user took back what turn %d changed in files: they are what they were before it.", b.Of)
	for _, f := range b.Files {
		s.WriteString("\n- " + f)
	}
	return tag("files_restored", "\n"+s.String()+"\n")
}

// describe names a call in one short line.
func describe(call *p.PromptItem) string {
	const maxRunes = 200
	s := call.Name + " " + strings.Join(strings.Fields(call.Arguments), " ")
	if r := []rune(s); len(r) > maxRunes {
		s = string(r[:maxRunes]) + "…"
	}
	return s
}

// importedText is the message that the conversation so far was had with another agent.
func importedText(b *p.Imported) string {
	text := fmt.Sprintf("The conversation up to here was had with another agent, %s, and imported. "+
		"Its calls were made with that agent's tools; call only the tools that you are offered now. "+
		"Files may have changed since then: look before you rely on what you read above.", b.Agent)
	if len(b.Losses) > 0 {
		text += " Parts of it could not be read:\n- " + strings.Join(b.Losses, "\n- ")
	}
	return tag("imported_conversation", "\n"+text+"\n")
}
