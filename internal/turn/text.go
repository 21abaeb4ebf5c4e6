package turn

import (
	"fmt"
	"strings"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// because says in words why a turn stops.
var because = map[p.EndReason]string{
	p.Interrupted: "the user stopped the turn",
	p.Replaced:    "the user replaced the turn by a new message",
	p.Failed:      "the turn failed",
	p.Crashed:     "the program was killed",
}

// abortText is what the model is told of a call that was cut. It begins with
// the word "aborted", which programs look for.
func abortText(reason p.EndReason, after time.Duration, cmd *p.CommandResult, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "aborted after %.1f s: %s while this ran. It may have had effects.", after.Seconds(), because[reason])
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

// abortPatch is the same for a patch, of which it is known what it did.
func abortPatch(reason p.EndReason, after time.Duration, patch *p.PatchResult) string {
	text := fmt.Sprintf("aborted after %.1f s: %s while this ran. ", after.Seconds(), because[reason])
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
