package exec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	p "github.com/fermata-agent/fermata/protocol"
)

// A run is a Run under way.
type run struct {
	out, err bytes.Buffer
	end      engine.TurnEnd
	failed   error
	done     chan struct{}
	cancel   context.CancelFunc
	e        *enginetest.Engine
	id       p.ConversationID
}

// start runs a turn in a bubble; change says how it differs from the usual.
func start(t *testing.T, change func(*Options)) *run {
	t.Helper()
	r := &run{done: make(chan struct{}), e: enginetest.New(t, enginetest.Options{})}
	r.id = r.e.Begin()
	o := Options{Request: Request{Conversation: r.id, Turn: p.UserTurn{Content: p.Text("go")}}, Output: Output{Out: &r.out, Err: &r.err}}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.end, r.failed = Run(ctx, r.e, o)
	}()
	return r
}

// usedLine says what a turn took; see TestUsageAndCost.
var usedLine = regexp.MustCompile(`(?m)^· \d+ tokens in, \d+ out.*\n`)

// want compares what was printed, but for the tokens; ID stands for the conversation.
func (r *run) want(t *testing.T, out, err string) {
	t.Helper()
	<-r.done
	if d := cmp.Diff(out, r.out.String()); d != "" {
		t.Errorf("stdout (-want +got):\n%s", d)
	}
	if d := cmp.Diff(err, usedLine.ReplaceAllString(strings.ReplaceAll(r.err.String(), string(r.id), "ID"), "")); d != "" {
		t.Errorf("stderr (-want +got):\n%s", d)
	}
}

// What a turn took is shown, and what it costs if the price is known.
func TestUsageAndCost(t *testing.T) {
	price := func(u p.Usage) (float64, bool) { return float64(u.Input) / 100, true }
	unknown := func(p.Usage) (float64, bool) { return 0, false }
	for _, tt := range []struct {
		cost func(p.Usage) (float64, bool)
		want string
	}{
		{price, "· 10 tokens in, 1 out, $0.1000\n"},
		{unknown, "· 10 tokens in, 1 out\n"},
		{nil, "· 10 tokens in, 1 out\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(o *Options) { o.Cost = tt.cost })
			r.e.Request().Answer("yes")
			<-r.done
			if got := r.err.String(); got != tt.want {
				t.Errorf("stderr %q, want %q", got, tt.want)
			}
			j := start(t, func(o *Options) { o.JSON, o.Cost = true, tt.cost })
			j.e.Request().Answer("yes")
			<-j.done
			if got := j.out.String(); strings.Contains(got, `"cost_usd":0.1`) != strings.Contains(tt.want, "$") {
				t.Errorf("stdout %s", got)
			}
		})
	}
}

func TestAnswerAloneOnStdout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		m := r.e.Request()
		m.Message("I look first")
		m.Call("c", "work", "{}")
		w := command(t, r, m, "bash", "-lc", "make test")
		w.Print("ok 1\nok 2\n")
		w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "ok 1\nok 2\n"}})
		r.e.Request().Answer("All tests pass.")
		r.want(t, "All tests pass.\n", "I look first\n$ make test\n  ok 1\n  ok 2\n  (ok, 0 ms)\n")
		if r.failed != nil || r.end.End.Reason != p.Completed {
			t.Errorf("end %+v, %v", r.end, r.failed)
		}
	})
}

func TestStopKeepsTheReplyAndSaysHowToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.e.Request().Delta("half an ans")
		r.cancel()
		r.want(t, "", "half an ans […partial]\nfermata: interrupted after 0 ms · reply kept\nto resume: fermata exec resume ID PROMPT\n")
	})
}

func TestOneScreenShowsTheAnswerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.OutTerminal, o.ErrTerminal = true, true })
		m := r.e.Request()
		m.Delta("All ")
		synctest.Wait()
		if got := r.out.String(); got != "All " {
			t.Errorf("shown so far: %q", got)
		}
		m.Delta("well.")
		m.Answer("All well.")
		r.want(t, "All well.\n· 10 tokens in, 1 out\n", "")
	})
}

func TestTerminalForProgressOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.ErrTerminal = true })
		m := r.e.Request()
		m.Delta("All well.")
		m.Answer("All well.")
		r.want(t, "All well.\n", "All well.\n")
	})
}

func TestLongOutputIsShownInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		w := command(t, r, m, "yes")
		text := strings.Repeat("y\n", 1000) + "last"
		w.Print(text)
		w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: text, ExitCode: 1}})
		r.e.Request().Answer("ok")
		want := "$ yes\n" + strings.Repeat("  y\n", 20) + "  … 976 more lines\n" + strings.Repeat("  y\n", 4) + "  last\n  (exit code 1, 0 ms)\n"
		r.want(t, "ok\n", want)
	})
}

// A line of output is shown as it looked in the end, and not all of it if it is
// a whole program.
func TestOutputIsShownAsItLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		w := command(t, r, m, "curl")
		live := " 1%\r50%\r\x1b[K100%\r\ncrlf\r\n\x1b[31mred\x1b[0m \x1b]0;title\aend\n" + strings.Repeat("y\n", shownLines-3)
		w.Print(live)
		w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: live + "9%\r99%\n" + strings.Repeat("ä", lineLength+1)}})
		r.e.Request().Answer("ok")
		r.want(t, "ok\n", "$ curl\n  100%\n  crlf\n  red end\n"+strings.Repeat("  y\n", shownLines-3)+"  99%\n  "+strings.Repeat("ä", lineLength-1)+"…\n  (ok, 0 ms)\n")
	})
}

func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		m := r.e.Request()
		m.Call("c", "work", "{}")
		w := command(t, r, m, "evil", "\u202egpj.exe", "\u2066", "\u05d0")
		w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "\x1b[2Jcleared\a\n"}})
		r.e.Request().Answer("ok")
		r.want(t, "ok\n", "$ evil '\ufffdgpj.exe' '\ufffd' '\u05d0'\n  cleared\n  (ok, 0 ms)\n")
	})
}

func TestFailureRetryNoticeAndHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Ephemeral = true })
		m := r.e.Request()
		r.e.Say(r.id, "and also", p.Queue)
		m.Fail(&p.Error{Kind: p.ErrorRateLimit, Message: "slow down", Retry: true, After: 2e9})
		r.e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "no credit left", Hint: "add some"})
		r.want(t, "", "· retry 1 of 10 in 2.0 s: slow down\nfermata: failed after 2.0 s: no credit left · add some\n")
		if r.end.End.Reason != p.Failed {
			t.Errorf("end %+v", r.end)
		}
	})
}

// A writer that blocks until it is closed.
type stuck struct{ closed chan struct{} }

func (s stuck) Write([]byte) (int, error) { <-s.closed; return 0, io.ErrClosedPipe }

func TestStopWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := stuck{make(chan struct{})}
		r := start(t, func(o *Options) { o.Err = pipe })
		m := r.e.Request()
		m.Message("this is never read")
		m.Call("c", "work", "{}")
		m.End()
		w := r.e.Run()
		_ = w.Call.Host.Record(t.Context(), &p.CommandStarted{Call: w.Call.ID, Command: []string{"sleep"}})
		synctest.Wait()
		r.cancel()
		<-r.done
		if r.failed != nil || r.end.End.Reason != p.Interrupted {
			t.Errorf("end %+v, %v", r.end, r.failed)
		}
		close(pipe.closed)
	})
}

// A turn that completed while nobody read, and was then stopped, is no success.
func TestStopWhenNobodyReadTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := stuck{make(chan struct{})}
		r := start(t, func(o *Options) { o.Out = pipe })
		r.e.Request().Answer("hello")
		synctest.Wait()
		r.cancel()
		<-r.done
		if !errors.Is(r.failed, ErrAnswerNotRead) {
			t.Errorf("end %+v, %v", r.end, r.failed)
		}
		close(pipe.closed)
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnswerThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Out = full{} })
		r.e.Request().Answer("hello")
		<-r.done
		if !errors.Is(r.failed, ErrAnswer) || r.end.End.Reason != p.Completed {
			t.Errorf("end %+v, %v", r.end, r.failed)
		}
	})
}

func TestPlanAndApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		m := r.e.Request()
		m.Call("p", "work", "{}")
		m.Call("c", "work", "{}")
		m.End()
		plan := r.e.Run()
		_ = plan.Call.Host.Record(t.Context(), &p.PlanUpdated{Call: plan.Call.ID, Plan: []p.PlanStep{{Step: "a", Status: "completed"}, {Step: "b", Status: "in_progress"}, {Step: "c", Status: "pending"}}})
		plan.Finish("Plan updated")
		w := r.e.Run()
		w.Ask("rm", "-r", "x")
		r.e.Request().Answer("kept")
		r.want(t, "kept\n", "  ✓ a\n  ▸ b\n  · c\n$ rm -r x\n? waiting for approval: why not\n  (declined, 0 ms)\n")
	})
}

func TestPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Park = true })
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		r.e.Run().Ask("rm", "x")
		<-r.done
		var parked *ParkedError
		if !errors.As(r.failed, &parked) || !slices.Equal(parked.Asks, []string{"1.1.0: rm x"}) {
			t.Fatalf("end %+v, %v", r.end, r.failed)
		}
		snap, err := r.e.Resume(t.Context(), r.id)
		if err != nil || !snap.Waiting {
			t.Fatalf("the turn: %+v, %v", snap, err)
		}

		var out, progress bytes.Buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			yes := &p.Approve{Call: snap.PendingApprovals[0], Decision: p.Approved}
			end, err := Run(t.Context(), r.e, Options{Request: Request{Conversation: r.id, Approve: yes}, Output: Output{Out: &out, Err: &progress}})
			if err != nil || end.End.Reason != p.Completed {
				t.Errorf("end %+v, %v", end, err)
			}
		}()
		r.e.Run().Finish("removed")
		r.e.Request().Answer("gone")
		<-done
		if out.String() != "gone\n" {
			t.Errorf("answer %q", out.String())
		}
	})
}

// On a terminal a line shows that something goes on; nothing of it stays, and
// a pipe never sees it.
func TestStatusLine(t *testing.T) {
	for _, tty := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(o *Options) { o.ErrTerminal = tty })
			m := r.e.Request()
			m.Call("c", "work", "{}")
			w := command(t, r, m, "make", "all")
			time.Sleep(3*time.Second + frameTime/2)
			w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{}})
			r.e.Request().Answer("built")
			<-r.done
			got := r.err.String()
			if tty != strings.Contains(got, "3 s · make all · 11 tokens") || tty != strings.Contains(got, clearLine) {
				t.Errorf("terminal %t: %q", tty, got)
			}
			if last := got[strings.LastIndex(got, "\r")+1:]; tty && strings.ContainsAny(last, string(frames)) {
				t.Errorf("the line stays: %q", last)
			}
		})
	}
}

// waitFrames gives the status line time to be drawn, in a bubble.
func waitFrames() { time.Sleep(5 * frameTime) }

// However long a command is and however many lines it has, the line is one line.
func TestStatusLineFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var width atomic.Int64
		width.Store(30)
		r := start(t, func(o *Options) { o.ErrTerminal = true; o.Width = func() int { return int(width.Load()) } })
		m := r.e.Request()
		m.Call("c", "work", "{}")
		w := command(t, r, m, "bash", "-lc", "echo a\n\techo 漢字漢字漢字漢字漢字 and so on")
		waitFrames()
		width.Store(20) // somebody made the window smaller
		waitFrames()
		w.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{}})
		r.e.Request().Answer("ok")
		<-r.done
		drawn := strings.Split(r.err.String(), clearLine)[1:]
		for i, line := range drawn {
			if i < len(drawn)-1 && (strings.Contains(line, "\n") || ansi.StringWidth(line) > 27) {
				t.Errorf("line %d: %q", i, line)
			}
		}
		want := []string{"⠹ 0 s · echo a echo 漢字漢…", "⠏ 1 s · echo a e…"}
		for _, line := range want {
			if !slices.Contains(drawn, line) {
				t.Errorf("drawn %q, want in it %q", drawn, line)
			}
		}
	})
}

// A parked turn leaves no line behind that shows that something goes on.
func TestStatusLineOfAParkedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Park, o.ErrTerminal = true, true })
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		w := r.e.Run()
		waitFrames()
		w.Ask("rm", "x")
		<-r.done
		got := r.err.String()
		if last := got[strings.LastIndex(got, clearLine)+len(clearLine):]; strings.ContainsAny(last, string(frames)) || !strings.Contains(got, clearLine) {
			t.Errorf("the line stays: %q", got)
		}
	})
}

// An end that is not on disk is named, also if the turn completed: the next process finds the turn unfinished.
func TestUnsavedEndIsNamed(t *testing.T) {
	var err bytes.Buffer
	pr := newPrinter(Options{Output: Output{Err: &err}})
	pr.endLine(engine.TurnEnd{End: p.TurnEnded{Reason: p.Completed}, Unsaved: true})
	if want := "fermata: the end of the turn could not be saved\n"; err.String() != want {
		t.Errorf("got %q, want %q", err.String(), want)
	}
}
