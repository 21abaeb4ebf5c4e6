package transcript

import (
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

func TestProgressAndQuestionsOfACall(t *testing.T) {
	call := p.CallID{Turn: 1, Response: 1}
	events := []p.Body{
		&p.TurnStarted{},
		&p.ToolCall{Call: call, Name: "docs__read"},
		&p.CallStarted{Call: call},
		&p.Delta{Item: call, Kind: p.DeltaProgress, Text: "1/3 reading\n2/3 reading\n"},
		&p.ElicitationRequested{Call: call, Number: 1, Message: "who?"},
		&p.ElicitationRequested{Call: call, Number: 2, Message: "why?"},
		&p.ElicitationResolved{Call: call, Number: 1, Action: p.ElicitationDecline},
	}
	tr := fold(events...)
	if it := tr.Items[0]; it.Progress != "2/3 reading" || it.Output != "" || len(it.Questions) != 1 || it.Questions[0].Number != 2 || it.Status != Open {
		t.Errorf("%+v", it)
	}
	tr = fold(append(events, &p.ElicitationResolved{Call: call, Number: 2, Action: p.ElicitationCancel}, &p.ToolOutput{Call: call, Output: "text"})...)
	if it := tr.Items[0]; it.Progress != "" || it.Output != "text" || len(it.Questions) != 0 || it.Status != Done {
		t.Errorf("%+v", it)
	}
}
