package turn

import (
	"fmt"
	"strings"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// stopReasons describes why a turn stops.
var stopReasons = map[p.EndReason]string{
	p.Interrupted: "the user stopped the turn",
	p.Replaced:    "the user replaced the turn by a new message",
	p.Failed:      "the turn failed",
	p.Crashed:     "the program was killed",
}

// abortText is the output of a call that was interrupted. It begins with
// the word "aborted", which programs look for.
func abortText(reason p.EndReason, after time.Duration, cmd *p.CommandResult, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "aborted after %.1f s: %s while this ran. It may have had effects.", after.Seconds(), stopReasons[reason])
	if cmd != nil && cmd.Killed > 0 {
		fmt.Fprintf(&b, " Processes killed: %d.", cmd.Killed)
	}
	if text == "" {
		b.WriteString(" It had printed nothing.")
		return b.String()
	}
	b.WriteString(" Output until then:\n")
	b.WriteString(p.Shorten(text))
	return b.String()
}

// notRunText is the output of a call that did not run because the turn stopped.
// It begins with the same word.
func notRunText(reason p.EndReason, tried *p.CommandResult) string {
	if tried == nil {
		return "aborted: " + stopReasons[reason] + " before this ran, so it was not run"
	}
	return "aborted: " + stopReasons[reason] + " before this ran outside the sandbox, so it was not run there" + triedText(tried)
}

// rejectText is the output of a call that was denied.
func rejectText(message string, tried *p.CommandResult) string {
	text := "rejected by the user"
	if message != "" {
		text += ": " + message
	}
	if tried != nil {
		text += triedText(tried)
	}
	return text
}

// triedText describes the run before the approval was requested.
func triedText(tried *p.CommandResult) string {
	text := fmt.Sprintf("\nBefore that it ran in the sandbox, with exit code %d, and printed", tried.ExitCode)
	if tried.Output == "" {
		return text + " nothing."
	}
	return text + ":\n" + p.Shorten(tried.Output)
}

// abortPatch is the same for a patch, of which it is known what it did.
func abortPatch(reason p.EndReason, after time.Duration, patch *p.PatchResult) string {
	text := fmt.Sprintf("aborted after %.1f s: %s while this ran. ", after.Seconds(), stopReasons[reason])
	switch {
	case patch.Unsettled:
		text += "Whether the patch was applied is not known yet: look at the files."
	case patch.Applied:
		text += "The patch was applied, all of it."
	default:
		text += "Nothing of the patch was applied."
	}
	if patch.Summary != "" {
		text += "\n" + patch.Summary
	}
	return text
}
