package appserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// turn runs a whole turn.
func (c *client) turn(text, answer string) {
	c.t.Helper()
	c.say(text)
	c.x.e.Request().Answer(answer)
	c.until("turn/completed")
}

func TestListsAndReads(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		var ids []string
		for _, name := range []string{"first", "second", "third"} {
			c.start()
			c.turn(name, "answer to "+name)
			ids = append(ids, string(c.id))
			time.Sleep(time.Second)
		}
		list := func(params string) string {
			r := c.result("thread/list", params)
			var names []string
			for _, th := range r["data"].([]any) {
				names = append(names, fmt.Sprint(at(th, "preview")))
			}
			if r["nextCursor"] != nil {
				names = append(names, "…")
			}
			return strings.Join(names, " ")
		}
		for params, want := range map[string]string{
			`{}`: "third second first", `{"sortDirection":"asc"}`: "first second third", `{"sortKey":"created_at","sortDirection":"asc","limit":2}`: "first second …",
			`{"sortKey":"created_at","sortDirection":"asc","limit":2,"cursor":"2"}`: "third", `{"searchTerm":"SEC"}`: "second", `{"cwd":"/elsewhere"}`: "",
			`{"cwd":["/w","/v"]}`: "third second first", `{"sourceKinds":["exec","appServer"]}`: "", `{"sourceKinds":["cli","vscode"],"limit":2}`: "third second …",
			`{"sectionId":"x"}`: "", `{"archived":true}`: "", `{"modelProviders":["other"]}`: "",
		} {
			if got := list(params); got != want {
				t.Errorf("%s: %q, want %q", params, got, want)
			}
		}
		if got := c.refused("thread/list", `{"cursor":"nonsense"}`); !strings.HasPrefix(got, "-32602 ") {
			t.Error(got)
		}
		c.result("thread/archive", fmt.Sprintf(`{"threadId":%q}`, ids[0]))
		if got := list(`{}`) + "|" + list(`{"archived":true}`); got != "third second|first" {
			t.Error(got)
		}
		c.until("thread/archived")
		if got := at(c.result("thread/unarchive", fmt.Sprintf(`{"threadId":%q}`, ids[0])), "thread", "preview"); got != "first" {
			t.Error(got)
		}
		c.result("thread/delete", fmt.Sprintf(`{"threadId":%q}`, ids[1]))
		if got := c.refused("thread/read", fmt.Sprintf(`{"threadId":%q}`, ids[1])); got != "-32600 thread not loaded: "+ids[1] {
			t.Error(got)
		}
		loaded := c.result("thread/loaded/list", `{}`)["data"].([]any)
		if len(loaded) != 1 || loaded[0] != ids[2] {
			t.Errorf("loaded: %v of %v", loaded, ids)
		}
	})
}

func TestPagesOfTurnsAndItems(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		for n := range 3 {
			c.turn(fmt.Sprint("m", n), fmt.Sprint("a", n))
		}
		r := c.result("thread/turns/list", `{"threadId":"T","limit":2}`)
		same(t, []string{"U3 completed; userMessage; agentMessage a2", "U2 completed; userMessage; agentMessage a1"}, c.turns(map[string]any{"turns": r["data"]}))
		r = c.result("thread/turns/list", fmt.Sprintf(`{"threadId":"T","limit":2,"cursor":%q,"itemsView":"notLoaded"}`, r["nextCursor"]))
		same(t, []string{"U1 completed"}, c.turns(map[string]any{"turns": r["data"]}))
		r = c.result("thread/items/list", `{"threadId":"T","turnId":"U2","sortDirection":"asc"}`)
		if got := len(r["data"].([]any)); got != 2 {
			t.Errorf("%d items", got)
		}
	})
}

func TestRevertForkRename(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c, other := x.connect(), x.connect()
		c.start()
		other.id = c.id
		other.want("thread/started")
		for n := range 3 {
			c.turn(fmt.Sprint("m", n), fmt.Sprint("a", n))
			synctest.Wait()
			other.want("status active []", "status idle") // who does not follow hears that much
		}
		r := c.result("thread/revert", `{"threadId":"T","beforeTurnId":"U3"}`)
		same(t, []string{"U1 completed; userMessage; agentMessage a0", "U2 completed; userMessage; agentMessage a1"}, c.turns(r["thread"]))
		c.want("thread/reverted")
		if got := c.refused("thread/revert", `{"threadId":"T","beforeTurnId":"U9"}`); !strings.HasPrefix(got, "-32600 ") {
			t.Error(got)
		}
		c.result("thread/name/set", `{"threadId":"T","name":"a name"}`)
		c.want("thread/name/updated")
		other.want("thread/name/updated") // who does not follow hears it too, and so does who follows, once
		c.nothing()
		other.nothing()

		r = c.result("thread/list", `{}`)
		if got := r["data"].([]any)[0]; at(got, "name") != "a name" || at(got, "preview") != "m0" {
			t.Errorf("listed as %v", got)
		}

		first := c.id
		r = c.result("thread/fork", `{"threadId":"T","lastTurnId":"U1"}`)
		if at(r, "thread", "forkedFromId") != string(first) {
			t.Errorf("fork %v", r)
		}
		c.id = p.ConversationID(at(r, "thread", "id").(string))
		same(t, []string{"U1 completed; userMessage; agentMessage a0"}, c.turns(r["thread"]))
		c.want("thread/started")
		c.turn("in the copy", "yes")
		r = c.result("thread/fork", fmt.Sprintf(`{"threadId":%q,"beforeTurnId":%q}`, c.id, "U2"))
		c.id = p.ConversationID(at(r, "thread", "id").(string))
		same(t, []string{"U1 completed; userMessage; agentMessage a0"}, c.turns(r["thread"]))
	})
}

func TestShellReviewCompact(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.turn("hi", "hello")
		c.result("thread/shellCommand", `{"threadId":"T","command":"ls"}`)
		run := x.e.Run()
		if err := run.Call.Host.Record(run.Ctx, &p.CommandStarted{Call: run.Call.ID, Command: []string{"bash", "-c", "ls"}, Cwd: "/w"}); err != nil {
			t.Fatal(err)
		}
		run.Return(p.ToolOutput{Output: "a\n", Command: &p.CommandResult{Output: "a\n"}})
		got := strings.Join(c.until("turn/completed U2 completed"), "|")
		if !strings.Contains(got, "item/completed commandExecution 2.0.1 bash -c ls completed a\n 0") || strings.Contains(got, "userMessage") {
			t.Errorf("got %q", got)
		}
		r := c.result("review/start", `{"threadId":"T","target":{"type":"uncommittedChanges"},"delivery":"inline"}`)
		if r["reviewThreadId"] != string(c.id) {
			t.Errorf("review %v", r)
		}
		x.e.Request().Answer("all is well")
		got = strings.Join(c.until("turn/completed U3 completed"), "|")
		for _, want := range []string{"item/completed enteredReviewMode", "item/completed agentMessage 3.1.0 all is well", "item/completed exitedReviewMode"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q lacks %q", got, want)
			}
		}
		c.result("thread/compact/start", `{"threadId":"T"}`)
		req := x.e.Request()
		req.Delta("a sum")
		req.Answer("a summary")
		got = strings.Join(c.until("turn/completed U4 completed"), "|")
		if !strings.Contains(got, "item/completed contextCompaction") || strings.Contains(got, "summ") {
			t.Errorf("got %q", got)
		}
		for target, want := range map[string]string{
			`{"type":"baseBranch"}`: "-32602 target: branch is missing", `{"type":"custom"}`: "-32602 target: instructions is missing",
		} {
			if got := c.refused("review/start", `{"threadId":"T","target":`+target+`}`); got != want {
				t.Error(got)
			}
		}
	})
}

// A compaction that is interrupted has its item completed too.
func TestInterruptedCompaction(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.turn("hi", "hello")
		c.result("thread/compact/start", `{"threadId":"T"}`)
		x.e.Request()
		c.until("item/started contextCompaction")
		c.ask("turn/interrupt", `{"threadId":"T","turnId":"U2"}`)
		got := c.until("turn/completed U2 interrupted")
		if !strings.HasPrefix(got[0], "item/completed contextCompaction") {
			t.Errorf("got %q", got)
		}
	})
}

func TestSettings(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		c.result("thread/settings/update", `{"threadId":"T","model":"other","approvalPolicy":"never","permissions":":read-only"}`)
		c.result("turn/start", `{"threadId":"T","input":[{"type":"text","text":"x"}],"model":"other","cwd":"/w","outputSchema":{"type":"object"}}`)
		r := x.e.Request()
		if r.Prompt.Model != "other" || string(r.Prompt.OutputSchema) != `{"type":"object"}` {
			t.Errorf("model %q, schema %s", r.Prompt.Model, r.Prompt.OutputSchema)
		}
		r.Answer("{}")
		c.until("turn/completed")
		c.say("no schema now") // it was for one turn
		if r := x.e.Request(); len(r.Prompt.OutputSchema) != 0 {
			t.Errorf("schema %s", r.Prompt.OutputSchema)
		}
		d, got := x.join(c)
		if got["approvalPolicy"] != "never" || got["model"] != "other" || at(got, "sandbox", "type") != "readOnly" {
			t.Errorf("settings %v", got)
		}
		for params, want := range map[string]string{
			`{"threadId":"T","approvalPolicy":{"granular":{}}}`:           "-32602 approvalPolicy: only untrusted, on-request and never are supported",
			`{"threadId":"T","permissions":":none"}`:                      `-32602 permissions: ":none" is none of :read-only, :workspace, :danger-full-access`,
			`{"threadId":"T","sandboxPolicy":{"type":"externalSandbox"}}`: `-32602 sandboxPolicy: the type "externalSandbox" is not supported`,
		} {
			if got := d.refused("thread/settings/update", params); got != want {
				t.Error(got)
			}
		}
	})
}

func TestSmallMethods(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		c := x.connect()
		c.start()
		for method, tt := range map[string]struct{ params, want string }{
			"account/read":                     {`{}`, "apiKey"},
			"config/read":                      {`{"includeLayers":true,"cwd":"."}`, "origins"},
			"configRequirements/read":          {`null`, "requirements"},
			"collaborationMode/list":           {`{}`, "mode:plan"},
			"model/list":                       {`{"includeHidden":true}`, "puppet"},
			"skills/list":                      {`{"cwds":["/w"]}`, "/w"},
			"permissionProfile/list":           {`{}`, ":workspace"},
			"hooks/list":                       {`{"cwds":[]}`, "data:[]"},
			"mcpServerStatus/list":             {`{"limit":1}`, "data:[]"},
			"thread/goal/get":                  {`{"threadId":"T"}`, "goal"},
			"thread/backgroundTerminals/list":  {`{"threadId":"T"}`, "data:[]"},
			"thread/backgroundTerminals/clean": {`{"threadId":"T"}`, "map"},
			"command/exec":                     {`{"command":["git","diff"],"cwd":"/w","timeoutMs":10}`, "exitCode:3"},
			"thread/search":                    {`{"searchTerm":"x"}`, "data:[]"},
		} {
			if got := fmt.Sprint(c.result(method, tt.params)); !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s", method, got)
			}
		}
		done := c.result("command/exec", `{"command":["x"],"timeoutMs":9223372036854775807,"env":{"A":"1","B":"","C":null}}`)
		if done["stdout"] != "x A=1 B= C=unset" || done["stderr"] != "" {
			t.Errorf("command/exec: %v", done)
		}
		if got := c.refused("command/exec", `{"command":["x"],"permissionProfile":{"type":"disabled"}}`); !strings.HasPrefix(got, "-32602") {
			t.Error(got)
		}
		if got := c.refused("command/exec", `{"command":["x"],"tty":true}`); !strings.HasPrefix(got, "-32602") {
			t.Error(got)
		}
		if got := c.refused("turn/start", `{"threadId":"T","input":[{"type":"audio","url":"x"}]}`); got != `-32602 input[0]: the type "audio" is not supported` {
			t.Error(got)
		}
		if got := c.refused("turn/start", `{"threadId":"nonsense","input":[]}`); got != "-32600 thread not found: nonsense" {
			t.Error(got)
		}
		c.nothing()
	})
}

// A thread is unloaded when nobody has followed it for a while, and everybody hears that.
func TestUnload(t *testing.T) {
	inBubble(t, func(t *testing.T, x *site) {
		a, b := x.connect(), x.connect()
		a.start()
		b.want("thread/started")
		for status, client := range map[string]*client{"unsubscribed": a, "notSubscribed": b} {
			if client == b {
				continue
			}
			if got := client.result("thread/unsubscribe", fmt.Sprintf(`{"threadId":%q}`, a.id))["status"]; got != status {
				t.Errorf("got %v, want %s", got, status)
			}
		}
		if got := b.result("thread/unsubscribe", fmt.Sprintf(`{"threadId":%q}`, a.id))["status"]; got != "notSubscribed" {
			t.Error(got)
		}
		time.Sleep(2 * time.Minute)
		b.id = a.id
		for _, c := range []*client{a, b} {
			got := []string{c.short(c.next()), c.short(c.next())} // in any order
			if all := strings.Join(got, "|"); !strings.Contains(all, "thread/closed") || !strings.Contains(all, "status notLoaded") {
				t.Errorf("got %q", got)
			}
		}
		if got := b.result("thread/unsubscribe", `{"threadId":"T"}`)["status"]; got != "notLoaded" {
			t.Error(got)
		}
	})
}

// The queue survives an interrupt, paused, and the end of the server; each message is sent once.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemoryStore(journal.MemoryOptions{})
		x := newSiteWith(t, enginetest.New(t, enginetest.Options{Store: store}))
		home := x.s.o.Home
		c := x.connect()
		c.start()
		add := func(c *client, text string) string {
			r := c.result("thread/queue/add", fmt.Sprintf(`{"threadId":"T","clientUserMessageId":"q-%s","input":[{"type":"text","text":%q}]}`, text, text))
			return fmt.Sprint(at(r, "queuedSubmission", "id"))
		}
		list := func(c *client) string {
			r := c.result("thread/queue/list", `{"threadId":"T"}`)
			var names []string
			for _, e := range r["data"].([]any) {
				names = append(names, fmt.Sprint(at(e, "clientUserMessageId")))
			}
			return fmt.Sprint(strings.Join(names, " "), " ", r["paused"])
		}
		add(c, "one") // the thread is idle: it starts at once
		r := x.e.Request()
		two, three := add(c, "two"), add(c, "three")
		four := add(c, "four")
		c.result("thread/queue/reorder", fmt.Sprintf(`{"threadId":"T","queuedSubmissionIds":[%q,%q,%q]}`, three, two, four))
		c.result("thread/queue/update", fmt.Sprintf(`{"threadId":"T","queuedSubmissionId":%q,"input":[{"type":"text","text":"drei"}]}`, three))
		if got := c.result("thread/queue/delete", fmt.Sprintf(`{"threadId":"T","queuedSubmissionId":%q}`, four))["deleted"]; got != true {
			t.Error(got)
		}
		if got := c.refused("thread/queue/reorder", fmt.Sprintf(`{"threadId":"T","queuedSubmissionIds":[%q]}`, three)); !strings.HasPrefix(got, "-32602") {
			t.Error(got)
		}
		if got := list(c); got != "q-three q-two false" {
			t.Error(got)
		}
		r.Answer("1")
		r = x.e.Request() // the next one
		if got := strings.Join(r.Inputs(), "|"); !strings.Contains(got, "drei") {
			t.Errorf("the model is sent %q", got)
		}
		synctest.Wait()
		c.result("turn/interrupt", `{"threadId":"T","turnId":"U2"}`)
		synctest.Wait()
		if got := list(c); got != "q-two true" {
			t.Error(got)
		}
		x.e.Idle()
		x.e.Kill() // and a new server
		y := newSiteWith(t, enginetest.New(t, enginetest.Options{Store: store}))
		y.s.o.Home = home
		d := y.connect()
		d.id = c.id
		if got := list(d); got != "q-two true" {
			t.Error(got)
		}
		d.result("thread/queue/start", `{"threadId":"T"}`)
		y.e.Request().Answer("2")
		synctest.Wait()
		if got := list(d); got != " false" {
			t.Error(got)
		}
		if got := d.refused("thread/queue/start", `{"threadId":"T"}`); !strings.HasPrefix(got, "-32600") {
			t.Error(got)
		}
	})
}
