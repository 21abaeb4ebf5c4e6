package mcpserver

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// onDisk connects a client to an engine whose disk can be full, and begins a conversation.
func onDisk(t *testing.T, full *atomic.Bool) *client {
	t.Helper()
	store := journal.NewMemoryStore(journal.MemoryOptions{SyncError: func() error {
		if full.Load() {
			return errors.New("no space left on device")
		}
		return nil
	}})
	c := attach(t, enginetest.New(t, enginetest.Options{Store: store}))
	c.send(`{"id":1,"method":"newConversation","params":{}}`)
	c.skip("1")
	return c
}

// A conversation that could not be recorded is closed. Who follows it follows it still when there is
// room again, and hears nothing twice.
func TestFollowersOutliveAFullDisk(t *testing.T) {
	for name, follow := range map[string]func(*client){
		"listener": func(c *client) { c.listen("2") },
		"stream":   func(c *client) { c.stream("2") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var full atomic.Bool
				c := onDisk(t, &full)
				follow(c)
				for range 2 {
					c.message("3", "go")
					m := c.e.Request()
					c.take("3")
					synctest.Wait()
					full.Store(true)
					m.Answer("unheard")
					c.until("task_complete")
					c.message("4", "and now?") // there is no room yet
					if got := c.skip("4"); !strings.Contains(got, `"error"`) {
						t.Error(got)
					}
					synctest.Wait()
					full.Store(false)
					c.message("5", "and now?")
					c.e.Request().Answer("heard")
					c.take("5")
					if got := strings.Join(c.until("task_complete"), " "); got != "background_event task_started agent_message token_count task_complete" {
						t.Errorf("told %s", got)
					}
				}
				c.nothing()
			})
		})
	}
}

// An approval that was open when the disk was full is open again, and asked for again.
func TestApprovalOutlivesAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		c := onDisk(t, &full)
		c.listen("2")
		c.message("3", "go")
		m := c.e.Request()
		m.Call("call_1", "work", "{}")
		m.End()
		c.e.Run().Ask("rm")
		c.take("3")
		c.until("exec_approval_request")
		full.Store(true)
		if _, err := c.e.Submit(t.Context(), p.ConversationID(c.id), p.Rename{Title: "x"}); err == nil {
			t.Error("it was recorded")
		}
		c.until("task_complete")
		full.Store(false)
		c.message("4", "and now?")
		c.take("4")
		c.want(`{"jsonrpc":"2.0","id":1,"method":"execCommandApproval","params":{"conversation_id":"C","call_id":"call_1","command":["rm"],"reason":"why not"}}`)
		c.send(`{"id":1,"result":{"decision":"approved"}}`)
		c.e.Run().Finish("done")
		c.e.Request().Answer("removed") // in a turn whose end was told
		c.e.Request().Answer("heard")
		c.hear("task_started 2", "agent_message 2", "task_complete 2")
		c.nothing()
	})
}

// Who follows a conversation that is put aside follows nothing any more, and does not open it again
// because it was used before.
func TestFollowersOfAnArchivedConversation(t *testing.T) {
	for range 20 { // whoever comes first
		synctest.Test(t, func(t *testing.T) {
			c := direct(t)
			subscription := c.listen("2")
			c.message("3", "go")
			c.e.Request().Answer("done")
			c.until("task_complete")
			c.send(`{"id":4,"method":"archiveConversation","params":{"conversationId":"C"}}`)
			if got, want := c.skip("4"), `{"jsonrpc":"2.0","id":4,"result":{}}`; got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			synctest.Wait()
			c.send(`{"id":5,"method":"removeConversationListener","params":{"subscriptionId":%q}}`, subscription)
			if got := c.skip("5"); !strings.Contains(got, "unknown subscription") {
				t.Error(got)
			}
		})
	}
}

// until reads up to an event of a type and returns the types of all that came.
func (c *client) until(kind string) (kinds []string) {
	c.t.Helper()
	for {
		line, h := c.next()
		if h.Method == "notifications/initial_state" {
			c.t.Errorf("again: %s", line)
		}
		if got, ok := h.Params.Msg["type"].(string); ok {
			if kinds = append(kinds, got); got == kind {
				return kinds
			}
		}
	}
}
