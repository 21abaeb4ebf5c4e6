package exec

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

func asJSON(o *Options) { o.JSON, o.Before = true, p.Usage{Input: 100} }

// wantLines compares the lines; ID stands for the conversation. Every line
// must be one JSON object.
func (r *run) wantLines(t *testing.T, want ...string) {
	t.Helper()
	<-r.done
	got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(r.out.String(), string(r.id), "ID"), "\n"), "\n")
	for _, l := range got {
		var v map[string]any
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Errorf("%q: %v", l, err)
		}
	}
	want = append([]string{`{"type":"thread.started","thread_id":"ID"}`, `{"type":"turn.started"}`}, want...)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}

// command ends a response that has asked for a call, and begins the command of that.
func command(t *testing.T, r *run, m interface{ End() }, argv ...string) *enginetest.Run {
	t.Helper()
	m.End()
	w := r.e.Run()
	if err := w.Call.Host.Record(t.Context(), &p.CommandStarted{Call: w.Call.ID, Command: argv}); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestJSONOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		m := r.e.Request()
		m.Think("Look first")
		m.Think(" ")
		m.Call("c", "work", "{}")
		c := command(t, r, m, "/bin/bash", "-lc", "go test 2>&1 ./...")
		c.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "FAIL\n", ExitCode: 1}})
		r.e.Request().Answer("It fails.")
		r.wantLines(t,
			`{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"Look first"}}`,
			`{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'go test 2>&1 ./...'","aggregated_output":"","exit_code":null,"status":"in_progress"}}`,
			`{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'go test 2>&1 ./...'","aggregated_output":"FAIL\n","exit_code":1,"status":"failed"}}`,
			`{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"It fails."}}`,
			`{"type":"turn.completed","usage":{"input_tokens":120,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":2,"reasoning_output_tokens":0}}`)
	})
}

// A stopped turn closes what is open, then says that it failed and why.
func TestJSONOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		c := command(t, r, m, "sleep", "60")
		c.Print("so far\n")
		r.cancel()
		r.wantLines(t,
			`{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"sleep 60","aggregated_output":"","exit_code":null,"status":"in_progress"}}`,
			`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"sleep 60","aggregated_output":"so far\n","exit_code":null,"status":"failed"}}`,
			`{"type":"error","message":"turn interrupted"}`,
			`{"type":"turn.failed","error":{"message":"turn interrupted"}}`)
	})
}

// Whoever stops a turn and waits for the end of the lines is not told that it failed.
func TestJSONOfAStopByTheReader(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(o *Options) {
				asJSON(o)
				o.OwnStop = func() bool { return own }
			})
			r.e.Request().Delta("half")
			r.cancel()
			lines := []string{
				`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"half","partial":true}}`,
				`{"type":"error","message":"turn interrupted"}`,
			}
			if !own {
				lines = append(lines, `{"type":"turn.failed","error":{"message":"turn interrupted"}}`)
			}
			r.wantLines(t, lines...)
		})
	}
}

func TestJSONOfAPlanARetryAndAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		w := r.e.Run()
		for _, status := range []string{"pending", "completed"} {
			_ = w.Call.Host.Record(t.Context(), &p.PlanUpdated{Call: w.Call.ID, Plan: []p.PlanStep{{Step: "fix", Status: status}}})
		}
		w.Finish("Plan updated")
		r.e.Request().Fail(&p.Error{Kind: p.ErrorConnection, Message: "broke", Retry: true})
		r.e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "no credit left", Hint: "add some"})
		r.wantLines(t,
			`{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"fix","completed":false}]}}`,
			`{"type":"item.updated","item":{"id":"item_0","type":"todo_list","items":[{"text":"fix","completed":true}]}}`,
			`{"type":"error","message":"Reconnecting... 1/10 (broke)"}`,
			`{"type":"item.completed","item":{"id":"item_0","type":"todo_list","items":[{"text":"fix","completed":true}]}}`,
			`{"type":"error","message":"no credit left · add some"}`,
			`{"type":"turn.failed","error":{"message":"no credit left · add some"}}`)
	})
}

// A list without steps is a list all the same, which readers may walk through.
func TestJSONOfAnEmptyPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		w := r.e.Run()
		_ = w.Call.Host.Record(t.Context(), &p.PlanUpdated{Call: w.Call.ID})
		w.Finish("Plan updated")
		r.e.Request().Answer("ok")
		r.wantLines(t,
			`{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[]}}`,
			`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"ok"}}`,
			`{"type":"item.completed","item":{"id":"item_0","type":"todo_list","items":[]}}`, usageOfTwo)
	})
}

func TestJSONOfADeclinedCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, asJSON)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		w := r.e.Run()
		w.Ask("rm", "it's")
		r.e.Request().Answer("kept")
		r.wantLines(t,
			`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"rm 'it'\\''s'","aggregated_output":"","exit_code":null,"status":"declined"}}`,
			`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"kept"}}`,
			`{"type":"turn.completed","usage":{"input_tokens":120,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":2,"reasoning_output_tokens":0}}`)
	})
}

// A pipe that is closed after some lines.
type closing struct{ left int }

func (c *closing) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// A command that has run and would have to run again: what it printed is told,
// whether it is declined or waits.
func TestJSONOfACommandThatAsksToRunAgain(t *testing.T) {
	const started = `{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"make install","aggregated_output":"","exit_code":null,"status":"in_progress"}}`
	for _, park := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(o *Options) { asJSON(o); o.Park = park })
			m := r.e.Request()
			m.Call("c", "work", "{}")
			w := command(t, r, m, "make", "install")
			w.Print("read-only\n")
			synctest.Wait()
			w.Ask("make", "install")
			if park {
				r.wantLines(t, started, `{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"make install","aggregated_output":"read-only\n","exit_code":null,"status":"failed"}}`)
				return
			}
			r.e.Request().Answer("kept")
			r.wantLines(t, started,
				`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"make install","aggregated_output":"read-only\n","exit_code":null,"status":"declined"}}`,
				`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"kept"}}`, usageOfTwo)
		})
	}
}

func TestJSONToAReaderWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { asJSON(o); o.Out = &closing{2} })
		m := r.e.Request()
		m.Message("one")
		<-r.done // the turn is stopped: its answer is not read
		m.Stopped()
		if !errors.Is(r.failed, io.ErrClosedPipe) || r.end.End.Reason != p.Interrupted {
			t.Errorf("end %+v, %v", r.end, r.failed)
		}
	})
}

// A command that a signal ended has no exit code, and one that could not be run
// says why.
func TestCommandsWithoutAnExitCode(t *testing.T) {
	const why = "failed to run the command: no such directory"
	play := func(t *testing.T, change func(*Options)) *run {
		r := start(t, change)
		for _, out := range []p.ToolOutput{
			{Output: "{}", Failed: true, Command: &p.CommandResult{ExitCode: -1, Signal: "SIGKILL"}},
			{Output: why, Failed: true, Command: &p.CommandResult{ExitCode: -1}},
			{Output: "{}", Failed: true, Command: &p.CommandResult{ExitCode: -1, TimedOut: true}},
		} {
			m := r.e.Request()
			m.Call("c", "work", "{}")
			command(t, r, m, "make").Return(out)
		}
		r.e.Request().Answer("ok")
		return r
	}
	synctest.Test(t, func(t *testing.T) {
		play(t, nil).want(t, "ok\n", "$ make\n  (killed by SIGKILL, 0 ms)\n$ make\n  "+why+"\n  (failed, 0 ms)\n$ make\n  (timed out, 0 ms)\n")
	})
	synctest.Test(t, func(t *testing.T) {
		r := play(t, asJSON)
		<-r.done
		for _, want := range []string{
			`"id":"item_0","type":"command_execution","command":"make","aggregated_output":"","exit_code":null,"status":"failed"`,
			`"id":"item_1","type":"command_execution","command":"make","aggregated_output":"` + why + `","exit_code":null,"status":"failed"`,
			`"id":"item_2","type":"command_execution","command":"make","aggregated_output":"","exit_code":null,"status":"failed"`,
		} {
			if !strings.Contains(r.out.String(), want) {
				t.Errorf("lines\n%s\nwant in them\n%s", r.out.String(), want)
			}
		}
	})
}

func TestJSONWithoutReasoning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { asJSON(o); o.HideThought = true })
		m := r.e.Request()
		m.Think("Look first")
		m.Answer("done")
		r.wantLines(t,
			`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}`,
			`{"type":"turn.completed","usage":{"input_tokens":110,"cached_input_tokens":0,"cache_write_input_tokens":0,"output_tokens":1,"reasoning_output_tokens":0}}`)
	})
}
