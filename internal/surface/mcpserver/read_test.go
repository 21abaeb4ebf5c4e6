package mcpserver

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
)

// A conversation can be read in every way while its turn is in any state.
func TestEveryStateCanBeRead(t *testing.T) {
	for _, state := range enginetest.TurnStates() {
		t.Run(state.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := enginetest.New(t, enginetest.Options{})
				id := e.Begin()
				e.Say(id, "hi")
				e.Request().Answer("hello")
				synctest.Wait()
				id = state.Enter(t, e, id)
				synctest.Wait()
				for _, request := range []string{
					`"method":"resumeConversation","params":{"conversationId":"C"}`,
					`"method":"listConversations","params":{}`,
					`"method":"addConversationListener","params":{"conversationId":"C"}`,
					`"method":"tools/call","params":{"name":"conversationsList","arguments":{}}`,
					`"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":"C"}}`,
					`"method":"tools/call","params":{"name":"conversationStream","arguments":{"conversation_id":"C","cursor":3}}`,
				} {
					c := attach(t, e)
					c.id = string(id)
					c.send(`{"id":"1",%s}`, request)
					c.take("1")
					synctest.Wait()
					if answer := c.last; strings.Contains(answer, `"error"`) || strings.Contains(answer, `"isError":true`) {
						t.Errorf("%s is answered %s", request, answer)
					}
					if strings.Contains(request, `"resumeConversation"`) && !strings.Contains(c.last, "hello") {
						t.Errorf("%s lacks what was said: %s", request, c.last)
					}
				}
			})
		})
	}
}
