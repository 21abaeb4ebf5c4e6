package exec

import (
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// What an MCP server asks is declined: nobody is there to answer.
func TestQuestionOfAServerIsDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		run := r.e.Run()
		resolved, err := run.Call.Host.(tool.Elicitor).Elicit(t.Context(), p.ElicitationRequested{Server: "s", Message: "who?"})
		if err != nil || resolved.Action != p.ElicitationDecline {
			t.Errorf("%+v, %v", resolved, err)
		}
		run.Finish("nobody")
		r.e.Request().Answer("done")
		<-r.done
	})
}
