package commands

import (
	"fmt"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/surface/tui/dialog"
	p "github.com/fermata-agent/fermata/protocol"
)

// QuitQuestion asks whether to quit although a turn runs, which is 0 if none does, or background commands. The choices are quit and
// stay.
func QuitQuestion(turn p.TurnID, running []string) dialog.Confirm {
	ask := dialog.Confirm{
		Title: humanize.Count(len(running), "background command") + " still running", Body: append([]string{"Quitting stops what still runs:"}, running...), Default: 1,
		Choices: []dialog.Choice{{ID: "quit", Key: "y", Label: "stop it, and quit"}, {ID: "stay", Key: "n", Label: "stay"}},
	}
	if turn != 0 {
		ask.Title = fmt.Sprintf("Turn %d is running", turn)
		ask.Body = append([]string{"Quitting stops it; the conversation can be resumed."}, running...)
		ask.Choices[0].Key = "s"
	}
	return ask
}

// DetachQuestion asks what becomes of a turn that another process runs. The choices are leave, stop and stay.
func DetachQuestion(id p.ConversationID, turn p.TurnID, o app.Owner) dialog.Confirm {
	body := []string{"Another process runs it, so it can continue without this terminal:", "fermata attach " + string(id)}
	quit := dialog.Choice{ID: "leave", Key: "l", Label: "leave it running, and quit"}
	if !o.Serves {
		body = []string{fmt.Sprintf("Process %d runs it, and stops it when that one quits.", o.PID)}
		quit = dialog.Choice{ID: "leave", Key: "q", Label: "quit only this terminal"}
	}
	return dialog.Confirm{
		Title: fmt.Sprintf("Turn %d has not ended", turn), Body: body,
		Choices: []dialog.Choice{quit, {ID: "stop", Key: "s", Label: "stop it, and quit"}, {ID: "stay", Key: "n", Label: "stay"}},
	}
}
