package exec

import (
	"testing"
	"testing/synctest"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// keep makes a command a background command: it has printed one line by then.
func keep(t *testing.T, r *run) *enginetest.Job {
	t.Helper()
	m := r.e.Request()
	m.Call("c", "work", "{}")
	w := command(t, r, m, "serve", "1")
	w.Print("up\n")
	synctest.Wait()
	job := r.e.Job()
	if err := w.Keep(job, "1"); err != nil {
		t.Fatal(err)
	}
	w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "up\n", Background: job.ID}})
	return job
}

const (
	serveStarted = `{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"serve 1","aggregated_output":"","exit_code":null,"status":"in_progress"}}`
	usageOfTwo   = `{"type":"turn.completed","usage":{"input_tokens":120,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":2,"reasoning_output_tokens":0}}`
)

// A background command is one item, from its call to its own end. One that
// runs on when the turn ends does not outlive the run, and is not called a success.
func TestJSONOfABackgroundCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		job := keep(t, r)
		m := r.e.Request()
		job.Print("bye\n")
		job.Exit(3)
		synctest.Wait()
		m.Answer("It ended.")
		r.wantLines(t, serveStarted,
			`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"serve 1","aggregated_output":"up\nbye\n","exit_code":3,"status":"failed"}}`,
			`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"It ended."}}`, usageOfTwo)
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		job := keep(t, r)
		m := r.e.Request()
		job.Print("serving\n")
		synctest.Wait()
		m.Answer("It runs.")
		r.wantLines(t, serveStarted,
			`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"It runs."}}`,
			`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"serve 1","aggregated_output":"up\nserving\n","exit_code":null,"status":"failed"}}`, usageOfTwo)
	})
}

// Of a parked turn, what began is ended, but what waits is not; afterwards
// nothing is told.
func TestJSONOfAParkedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { asJSON(o); o.Park = true })
		job := keep(t, r)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		r.e.Run().Ask("rm", "x")
		<-r.done
		job.Print("more\n")
		job.Exit(0)
		synctest.Wait()
		r.wantLines(t, serveStarted,
			`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"serve 1","aggregated_output":"up\n","exit_code":null,"status":"failed"}}`)
	})
}

func TestBackgroundCommandForPeople(t *testing.T) {
	for code, how := range map[int]string{0: "ok", 3: "exit code 3"} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, nil)
			job := keep(t, r)
			m := r.e.Request()
			job.Exit(code)
			synctest.Wait()
			m.Answer("It ended.")
			r.want(t, "It ended.\n", "$ serve 1\n  up\n  (continues in the background as 1, 0 ms)\n· background command 1 ended ("+how+")\n")
		})
	}
}

// Nobody shall believe that it goes on when the run is over.
func TestBackgroundCommandThatEndsWithTheRun(t *testing.T) {
	const serves, ends = "$ serve 1\n  up\n  (continues in the background as 1, 0 ms)\n", "· background command 1 is stopped with this run: serve 1\n"
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		keep(t, r)
		r.e.Request().Answer("It runs.")
		r.want(t, "It runs.\n", serves+ends)
	})
	synctest.Test(t, func(t *testing.T) { // unless another process runs it
		r := start(t, func(o *Options) { o.Detach = make(chan struct{}) })
		keep(t, r)
		r.e.Request().Answer("It runs.")
		r.want(t, "It runs.\n", serves+"· background command 1 continues; to stop it: fermata kill ID 1\n")
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Park = true })
		keep(t, r)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		r.e.Run().Ask("rm", "x")
		r.want(t, "", serves+"$ rm x\n? waiting for approval: why not\n"+ends)
	})
}

func TestJSONOfNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { asJSON(o); o.Notices = []string{"a record was lost"} })
		r.e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "no credit left"})
		<-r.done
		want := `{"type":"thread.started","thread_id":"` + string(r.id) + `"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"a record was lost"}}
{"type":"turn.started"}
{"type":"error","message":"no credit left"}
{"type":"turn.failed","error":{"message":"no credit left"}}
`
		if got := r.out.String(); got != want {
			t.Errorf("lines\n%s\nwant\n%s", got, want)
		}
	})
}
